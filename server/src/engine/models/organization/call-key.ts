/**
 * The key of a model's cooldown and circuit breaker: `provider/model`, with `own` in front for an organization's
 * provider, so that errors of one organization's key do not affect others.
 */
export function callKey(provider_model: string, own: string | undefined): string {
  return own === undefined ? provider_model : `${own} ${provider_model}`
}

/** The `provider/model` of a key, for people. */
export function nameOfKey(key: string): string {
  return key.replace(/^mprov_[^ ]+ /, '')
}
