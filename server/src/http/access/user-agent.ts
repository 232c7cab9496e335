/** User agents name themselves in far less. */
const userAgentMax = 500

/** The `User-Agent` of a request, cut to `max` characters: it is stored as it was sent. Empty where none was sent. */
export function userAgentOf(
  { headers }: { headers: Readonly<Record<string, string | string[] | undefined>> },
  max = userAgentMax,
): string {
  return String(headers['user-agent'] ?? '').slice(0, max)
}
