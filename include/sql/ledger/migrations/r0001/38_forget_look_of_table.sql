-- A table whose facts are written is looked at again, whoever wrote them.
create trigger forget_look before update of schema, name, identity, columns, shape on penstock.table
for each row execute function penstock.forget_look()
