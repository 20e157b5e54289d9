-- The large messages of a window in stream order, each as pieces that follow each other, with the size of the whole.
select octet_length(m.data) as size, substr(m.data, 1 + place, {piece}) as piece
from ({peek}) as m
cross join lateral generate_series(0, octet_length(m.data) - 1, {piece}) as place
where octet_length(m.data) >= {large}
