import type { Answered } from './http.ts'

/** Where a list stands: those of agents count from an offset, those of projects in pages. */
interface Pagination {
  total: number
  limit: number
  offset?: number
  has_more?: boolean
  page?: number
  has_next?: boolean
  /** Of lists whose entries come and go; null after the last page. */
  next_cursor?: string | null
}

type Fetch<Body> = (at: Record<string, unknown>) => Promise<Answered<Body>>

/** Some entries of a list. */
export class Page<Item, Body> {
  readonly items: Item[]
  /** The whole answer. */
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

  /** All entries that match, on this page or another. */
  get total(): number {
    return this.#pagination.total
  }

  hasNextPage(): boolean {
    const { has_more, has_next } = this.#pagination
    return (has_more ?? has_next ?? false) && this.items.length > 0
  }

  /** The page after this one; undefined after the last. */
  async nextPage(): Promise<Page<Item, Body> | undefined> {
    if (!this.hasNextPage()) return undefined
    const { offset, page, next_cursor } = this.#pagination
    if (typeof next_cursor === 'string') return this.#list.page({ cursor: next_cursor })
    return this.#list.page(offset === undefined ? { page: (page ?? 1) + 1 } : { offset: offset + this.items.length })
  }
}

/**
 * A list that has not been asked for yet: iterate over its entries, which asks for page after page, or take its pages. Logs,
 * tasks, events and deliveries go on by a cursor, so each entry comes once; in other lists, what is added or removed
 * meanwhile may move an entry over the edge of two pages.
 */
export class List<Item, Body> implements AsyncIterable<Item> {
  readonly #fetch: Fetch<Body>
  readonly #member: string

  constructor(fetch: Fetch<Body>, member: string) {
    this.#fetch = fetch
    this.#member = member
  }

  /** The page that the query names: the first where it names none. */
  async page(at: { offset?: number; page?: number; cursor?: string } = {}): Promise<Page<Item, Body>> {
    return new Page(this, await this.#fetch(at), this.#member)
  }

  /** Page after page. */
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
