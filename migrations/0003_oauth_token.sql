-- Rotating refresh tokens of OAuth 2, see src/oauth/shared-grant.ts. The tokens are stored as they are.
create table oauth_token (
  name          text    not null, -- of the table [oauth.NAME]
  user          text    not null,
  refresh_token text,             -- null until the first answer of the authority
  access_token  text,
  expires_at    integer not null default 0,
  generation    integer not null default 0,
  origin        text    not null default '', -- SHA-256 of the token of refresh_token_file from which the chain began
  claimed_until integer not null default 0,  -- end of the right of a node to ask the authority
  primary key (name, user),
  check ((refresh_token is null) = (generation = 0))
) strict, without rowid;
