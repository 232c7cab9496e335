import { Cadre } from '#sdk/client.ts'

/** Where the console is: `/`, or the path that a proxy puts before it. With a slash at its end. */
export const basePath = new URL('.', document.baseURI).pathname

/** The API by the session cookie of this browser. A key or token is never here. */
export const api = new Cadre({ apiKey: null, baseURL: basePath.replace(/\/$/, '') })

/** Where a person signs in, to come back to this page. */
export function signInPath(): string {
  const { pathname, search } = location
  // The service knows its paths without what a proxy puts before them.
  const here = `/${pathname.slice(basePath.length)}${search}`
  return `${basePath}login?${new URLSearchParams({ return_to: here })}`
}
