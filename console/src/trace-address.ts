import { tracePlace as place } from '#contract/accounts/preference-choices.ts'

/** What is wrong with such an address; undefined where it can be used. */
export function traceAddressFault(address: string): string | undefined {
  if (address === '') return undefined
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return 'It must begin with https:// or http://.'
  return address.includes(place) ? undefined : `It must contain ${place} in place of a trace’s identifier.`
}

/** Where a trace is; undefined where no address is known. */
export function traceUrl(address: string, trace_id: string): string | undefined {
  if (address === '' || traceAddressFault(address) !== undefined) return undefined
  return address.replaceAll(place, encodeURIComponent(trace_id))
}
