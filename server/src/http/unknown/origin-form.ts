/**
 * The path and query of a request line in absolute form, such as `GET http://host/path HTTP/1.1`, which every server must
 * accept (RFC 9112 §3.2.2). The router would find its route, but code that reads the URL expects a path.
 */
export function originForm(url: string): string {
  const [, path] = /^https?:\/\/[^/?#]*(.*)$/i.exec(url) ?? []
  if (path === undefined) return url
  return path.startsWith('/') ? path : `/${path}`
}
