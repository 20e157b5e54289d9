select to_regnamespace('penstock') is not null
