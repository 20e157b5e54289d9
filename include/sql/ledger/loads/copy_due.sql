select penstock.needed_after(%(name)s, %(snapshot)s)
