-- The source's clock when capture last found nothing after the position.
alter table penstock.pipeline add column source_time timestamptz
