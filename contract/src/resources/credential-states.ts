/**
 * States of a credential of type `oauth2`. `connected`: it has tokens. `needs_authorization`: a person must connect
 * it. `failing`: its last renewal failed. `unreadable`, for any type: it was encrypted with another
 * `CADRE_SECRET_KEY`.
 */
export const tokenStates = ['connected', 'needs_authorization', 'failing'] as const
export const credentialStates = [...tokenStates, 'unreadable'] as const
export type CredentialState = (typeof credentialStates)[number]

/** `secret`: a value that a person set. `oauth2`: tokens that the service gets from an issuer. */
export const credentialTypes = ['secret', 'oauth2'] as const
export type CredentialType = (typeof credentialTypes)[number]

/** How an `oauth2` credential gets its tokens (RFC 6749 §4.1 and §4.4). */
export const credentialGrants = ['client_credentials', 'authorization_code'] as const
export type CredentialGrant = (typeof credentialGrants)[number]
