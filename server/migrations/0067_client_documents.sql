-- runs-with: 0066
-- Apps that no organization registered: they are known by the address of their metadata document, which counts as read until then.
alter table oauth_client alter column org_id drop not null;
alter table oauth_client add column document_until timestamptz;
alter table oauth_client add constraint oauth_client_origin_check check ((org_id is null) = (document_until is not null));
create index oauth_client_document on oauth_client (document_until) where document_until is not null;
-- Whether members may let such apps in.
alter table organization add column client_documents boolean not null default true;
