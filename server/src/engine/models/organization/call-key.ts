/**
 * Under which key cooldowns and failures of a model are known: `provider/model` of the service, and with `own` in front of it where the
 * provider is an organization's, so that what one organization's key may not is nothing to others.
 */
export function callKey(provider_model: string, own: string | undefined): string {
  return own === undefined ? provider_model : `${own} ${provider_model}`
}

/** The `provider/model` of a key, for people. */
export function nameOfKey(key: string): string {
  return key.replace(/^mprov_[^ ]+ /, '')
}
