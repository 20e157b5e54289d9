select content
from penstock_ddl.told
order by number
