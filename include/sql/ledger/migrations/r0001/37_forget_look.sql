create function penstock.forget_look() returns trigger language plpgsql as
$$
begin
    new.looked := null;
    return new;
end
$$
