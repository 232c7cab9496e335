/** Usual user agents are much shorter. */
const userAgentMax = 500

/** The `User-Agent` of a request, cut to `max` characters because it is stored; empty without one. */
export function userAgentOf(
  { headers }: { headers: Readonly<Record<string, string | string[] | undefined>> },
  max = userAgentMax,
): string {
  return String(headers['user-agent'] ?? '').slice(0, max)
}
