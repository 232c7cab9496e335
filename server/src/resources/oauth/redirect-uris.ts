const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * What is wrong with a redirect URI; undefined if it is valid (decision D77): https, or http on a loopback address;
 * without fragment, wildcard and user info; in normalized form.
 */
export function redirectUriError(uri: string, native: boolean): string | undefined {
  if (!/^https?:\/\/[\x21-\x7e]+$/.test(uri) || /[\\"<>^`{|}]/.test(uri))
    return 'must be an https URL (http for loopback addresses only)'
  const url = URL.parse(uri)
  if (url === null) return 'must be a URL'
  if (url.protocol === 'http:' && !loopbackHosts.has(url.hostname))
    return 'must be an https URL (http for loopback addresses only)'
  if (native && url.protocol === 'https:' && loopbackHosts.has(url.hostname))
    return 'must use http on loopback addresses, as native apps do'
  if (uri.includes('#')) return 'must not have a fragment'
  if (uri.includes('*')) return 'must not have a wildcard'
  if (url.username !== '' || url.password !== '') return 'must not have user info'
  return undefined
}

/** Whether a redirect URI is on a loopback address, where any program of the user's machine may listen. */
export function isLoopback(uri: string): boolean {
  return loopbackHosts.has(URL.parse(uri)?.hostname ?? '')
}
