-- runs-with: 0044
-- Requests to doors that an equal one may claim: a client that asks the same every second leaves many that were answered.
create index door_request_claimable on door_request (credential_id, hash) where state <> 'answered';
