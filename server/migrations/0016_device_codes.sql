-- runs-with: 0015
-- What a person types to let a device in (RFC 8628) names its row. Codes of devices live for minutes, so the index stays small.
create index oauth_artifact_user_code on oauth_artifact ((payload->>'userCode')) where kind = 'DeviceCode';
