import type { FastifyInstance } from 'fastify'
import { notFound } from '#contract/core/problems.ts'
import * as operations from '#contract/doors/openai.ts'
import type { Context } from '../../context.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import {
  addConversationItems,
  deleteConversationItem,
  hideConversation,
  insertConversation,
  listConversationResponses,
  requireConversation,
  setConversationMetadata,
  type ConversationRow,
} from '../conversations.queries.ts'
import { findResponse } from '../door-responses.queries.ts'
import { pageOf } from './pages.ts'
import { badParameter } from './problems.ts'
import { readInput } from './read-input.ts'
import { requireMetadata } from './read-options.ts'
import { readState } from './responses.ts'

/** Routes of conversations: threads whose first response assigns their agent. */
export function conversationRoutes(app: FastifyInstance, http: HttpContext, { sql }: Context): void {
  handle(app, http, operations.createConversation, {
    run: async (handling) => {
      const { items, metadata } = handling.body as Record<string, unknown>
      const { org_id, user_id: created_by } = handling.principal
      const id = newId('conv')
      const given = { metadata: requireMetadata(metadata ?? {}), items: itemsOf(items ?? []) }
      await insertConversation(handling.sql, { id, org_id, created_by, ...given })
      return view(await requireConversation(handling.sql, id, handling.principal))
    },
  })
  handle(app, http, operations.getConversation, { load, run: async ({ loaded }) => view(loaded) })
  handle(app, http, operations.updateConversation, {
    load,
    run: async (handling) => {
      const { metadata } = handling.body as Record<string, unknown>
      const given = requireMetadata(metadata ?? {})
      await setConversationMetadata(handling.sql, handling.loaded.id, given)
      return view({ ...handling.loaded, metadata: given })
    },
  })
  handle(app, http, operations.deleteConversation, {
    load,
    run: async (handling) => {
      await hideConversation(handling.sql, handling.loaded.id)
      return { id: handling.loaded.id, object: 'conversation.deleted', deleted: true }
    },
  })
  handle(app, http, operations.listConversationItems, {
    load,
    run: async ({ loaded, query, principal }) => pageOf(await listItems(sql, loaded, principal), query),
  })
  handle(app, http, operations.createConversationItems, {
    load,
    run: async (handling) => {
      const { loaded, principal } = handling
      const items = itemsOf((handling.body as Record<string, unknown>)['items'])
      await handling.sql.begin(async (tx) => {
        await requireConversation(tx, loaded.id, principal, { lock: true })
        await addConversationItems(tx, loaded.id, items)
      })
      return pageOf(items as { id: string }[], { order: 'asc', limit: operations.openaiBounds.page_limit })
    },
  })
  handle(app, http, operations.getConversationItem, {
    load,
    run: async ({ loaded, params, principal }) => requireItem(sql, loaded, params['item_id']!, principal),
  })
  handle(app, http, operations.deleteConversationItem, {
    load,
    run: async (handling) => {
      const { loaded, principal, params } = handling
      const item_id = params['item_id']!
      if (await deleteConversationItem(handling.sql, loaded.id, item_id)) return view(loaded)
      await requireItem(sql, loaded, item_id, principal)
      throw badParameter(
        'item_id',
        'The item belongs to a response and cannot be deleted. Delete the conversation instead.',
      )
    },
  })
}

function load({ sql, params, principal }: Loading): Promise<ConversationRow> {
  return requireConversation(sql, params['conversation_id']!, principal)
}

function view({ id, created_at, metadata }: ConversationRow) {
  return { id, object: 'conversation', created_at: Math.floor(Date.parse(created_at) / 1000), metadata }
}

function itemsOf(items: unknown): Record<string, unknown>[] {
  if (!Array.isArray(items)) throw badParameter('items', 'items must be a list.')
  const max = operations.openaiBounds.conversation_items
  if (items.length > max) throw badParameter('items', `items must have at most ${max} entries.`)
  return readInput(items, 'items').items
}

async function requireItem(sql: Sql, of: ConversationRow, item_id: string, principal: Loading['principal']) {
  const item = (await listItems(sql, of, principal)).find(({ id }) => id === item_id)
  if (!item) throw notFound('conversation_item_not_found', 'item', item_id.slice(0, 100))
  return item
}

/**
 * The items of a conversation in their order: input and output of each response, then items that no response has
 * read.
 */
async function listItems(sql: Sql, { id, items }: ConversationRow, principal: Loading['principal']) {
  const all: { id: string }[] = []
  for (const { id: response_id } of await listConversationResponses(sql, id)) {
    const found = await findResponse(sql, response_id, principal, { hidden: true })
    if (found) all.push(...(found.input as { id: string }[]), ...(await readState(sql, found)).output)
  }
  return [...all, ...(items as unknown as { id: string }[])]
}
