import type { Answered } from './http.ts'

/** Position in a list: by offset, by page, or by cursor. */
interface Pagination {
  total: number
  limit: number
  offset?: number
  has_more?: boolean
  page?: number
  has_next?: boolean
  /** Of lists with cursors; null after the last page. */
  next_cursor?: string | null
}

type Fetch<Body> = (at: Record<string, unknown>) => Promise<Answered<Body>>

/** A page of a list. */
export class Page<Item, Body> {
  readonly items: Item[]
  /** The whole body of the response. */
  readonly body: Body
  readonly response: Response
  readonly requestId: string | null
  readonly #pagination: Pagination
  readonly #list: List<Item, Body>

  constructor(list: List<Item, Body>, { data, response, requestId }: Answered<Body>, member: string) {
    const members = data as Record<string, unknown>
    this.items = members[member] as Item[]
    this.body = data
    this.response = response
    this.requestId = requestId
    this.#pagination = members.pagination as Pagination
    this.#list = list
  }

  /** Number of matching entries on all pages. */
  get total(): number {
    return this.#pagination.total
  }

  hasNextPage(): boolean {
    const { has_more, has_next } = this.#pagination
    return (has_more ?? has_next ?? false) && this.items.length > 0
  }

  /** The next page; undefined after the last. */
  async nextPage(): Promise<Page<Item, Body> | undefined> {
    if (!this.hasNextPage()) return undefined
    const { offset, page, next_cursor } = this.#pagination
    if (typeof next_cursor === 'string') return this.#list.page({ cursor: next_cursor })
    return this.#list.page(offset === undefined ? { page: (page ?? 1) + 1 } : { offset: offset + this.items.length })
  }
}

/**
 * A list, which sends requests only when it is read: iterate over its entries or its pages. Lists with a `next_cursor` return
 * each entry once. In other lists, entries that are added or removed meanwhile may shift an entry to another page.
 */
export class List<Item, Body> implements AsyncIterable<Item> {
  readonly #fetch: Fetch<Body>
  readonly #member: string

  constructor(fetch: Fetch<Body>, member: string) {
    this.#fetch = fetch
    this.#member = member
  }

  /** The page at a position; the first by default. */
  async page(at: { offset?: number; page?: number; cursor?: string } = {}): Promise<Page<Item, Body>> {
    return new Page(this, await this.#fetch(at), this.#member)
  }

  /** All pages. */
  async *pages(): AsyncGenerator<Page<Item, Body>, void, undefined> {
    for (let page: Page<Item, Body> | undefined = await this.page(); page; page = await page.nextPage()) yield page
  }

  /** The first `max` entries. */
  async toArray({ max = Number.POSITIVE_INFINITY }: { max?: number } = {}): Promise<Item[]> {
    const items: Item[] = []
    if (max <= 0) return items
    for await (const item of this) if (items.push(item) >= max) break
    return items
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.items
  }
}
