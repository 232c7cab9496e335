/**
 * A browser without scripts, for tests: keeps cookies by path, follows redirects and `meta refresh` within one origin,
 * reads forms as they were sent and submits them with what a person would type.
 */
export class Browser {
  readonly origin: string
  cookies: Cookie[] = []
  /** Headers that every request carries. */
  headers: Record<string, string> = { accept: 'text/html', 'user-agent': 'test browser' }

  constructor(origin: string) {
    this.origin = origin
  }

  /** One request, redirects not followed. */
  async request(
    url: string,
    init: { method?: string; body?: string; headers?: Record<string, string> } = {},
  ): Promise<BrowserPage> {
    const target = new URL(url, this.origin)
    const response = await fetch(target, {
      ...init,
      redirect: 'manual',
      headers: { ...this.headers, ...init.headers, cookie: this.cookieHeader(target.pathname) },
    })
    for (const text of response.headers.getSetCookie()) this.#keep(parseCookie(text))
    return { url: target.href, status: response.status, headers: response.headers, html: await response.text() }
  }

  get(url: string): Promise<BrowserPage> {
    return this.request(url)
  }

  post(url: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<BrowserPage> {
    const body = new URLSearchParams(fields).toString()
    return this.request(url, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
  }

  /** Follows redirects within the origin; returns the last page, or the address outside of it. */
  async follow(page: BrowserPage): Promise<BrowserPage & { left?: URL }> {
    for (let hops = 0; hops < 10; hops++) {
      const onward = page.headers.get('location') ?? refreshOf(page.html)
      if (onward === undefined) return page
      const target = new URL(onward, page.url)
      if (target.origin !== this.origin) return { ...page, left: target }
      page = await this.get(target.href)
    }
    throw new Error('too many redirects')
  }

  /** Submits the form of a page that goes to `action`, with its hidden fields and `fields`. */
  submit(page: BrowserPage, action: string | RegExp, fields: Record<string, string>): Promise<BrowserPage> {
    const form = formsOf(page.html).find((form) =>
      typeof action === 'string' ? form.action === action : action.test(form.action),
    )
    if (!form)
      throw new Error(`no form goes to ${action}: ${page.status} ${page.html.slice(page.html.indexOf('<main'), 2000)}`)
    return this.post(form.action, { ...form.hidden, ...fields })
  }

  cookie(name: string): string | undefined {
    return this.cookies.find((cookie) => cookie.name === name)?.value
  }

  cookieHeader(path: string): string {
    return this.cookies
      .filter((cookie) => path.startsWith(cookie.path))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
  }

  #keep(cookie: Cookie): void {
    this.cookies = this.cookies.filter(({ name, path }) => name !== cookie.name || path !== cookie.path)
    if (!cookie.expired) this.cookies.push(cookie)
  }
}

export interface BrowserPage {
  url: string
  status: number
  headers: Headers
  html: string
}

export interface Cookie {
  name: string
  value: string
  path: string
  expired: boolean
  /** As it was sent. */
  text: string
}

export function parseCookie(text: string): Cookie {
  const [pair = '', ...attributes] = text.split(/; */)
  const at = pair.indexOf('=')
  const attribute = (name: string): string | undefined =>
    attributes.find((attribute) => attribute.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1)
  const expires = attribute('expires')
  return {
    name: pair.slice(0, at),
    value: pair.slice(at + 1),
    path: attribute('path') ?? '/',
    expired: attribute('max-age') === '0' || (expires !== undefined && Date.parse(expires) < Date.now()),
    text,
  }
}

function formsOf(html: string): { action: string; hidden: Record<string, string> }[] {
  return [...html.matchAll(/<form method="post" action="([^"]*)">([\s\S]*?)<\/form>/g)].map(
    ([, action = '', inner = '']) => ({
      action: unescape(action),
      hidden: Object.fromEntries(
        [...inner.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(
          ([, name = '', value = '']) => [name, unescape(value)],
        ),
      ),
    }),
  )
}

function refreshOf(html: string): string | undefined {
  const [, url] = /<meta http-equiv="refresh" content="0;url=([^"]*)">/.exec(html) ?? []
  return url === undefined ? undefined : unescape(url)
}

function unescape(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}
