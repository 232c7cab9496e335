import type { FastifyInstance } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { notFound, Problem, invalid } from '#contract/core/problems.ts'
import * as operations from '#contract/models/model-providers.ts'
import type { Context } from '../../context.ts'
import { testProvider } from '../../engine/models/organization/test-provider.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { newId } from '../../platform/ids.ts'
import { keepOut } from '../../platform/log.ts'
import {
  deleteModelProvider,
  insertModelProvider,
  listOwnProviders,
  requireModelProvider,
  updateModelProvider,
  type ModelProviderRow,
} from './model-providers.queries.ts'
import {
  checkedPrices,
  checkedProvider,
  goesElsewhere,
  previewOf,
  projectsOf,
  providerView,
} from './provider-content.ts'
import { listProviderUse } from './provider-use.queries.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** Routes of model providers: those of the service with their status, and those of the organization. */
export function modelProviderRoutes(
  app: FastifyInstance,
  http: HttpContext,
  { config, modelProviders, organizationModels, secrets, egress, log }: Context,
): void {
  const stored = (api_key: string | null | undefined, id: string) => {
    if (api_key === undefined || api_key === null) return { api_key: null, key_preview: null }
    keepOut(log, [api_key])
    return { api_key: secrets.encrypt(secretLabels.model_provider, api_key, id), key_preview: previewOf(api_key) }
  }

  handle(app, http, operations.createModelProvider, {
    run: async ({ sql, body, principal, actor }) => {
      const { org_id, user_id: created_by } = principal
      const { name, base_url, protocol, api_key } = body
      const provider = checkedProvider(egress, { name, base_url, protocol, hasKey: api_key !== undefined })
      const id = newId('mprov')
      const row = await sql.begin(async (tx) => {
        const projects = await projectsOf(tx, org_id, body.projects)
        const prices = checkedPrices(body.prices ?? {})
        const content = { name, base_url: provider.base_url, protocol: provider.protocol, projects, prices }
        const made = await insertModelProvider(
          tx,
          { ...content, ...stored(api_key, id), id, org_id, created_by },
          bounds.model_providers_per_organization,
        )
        if (made)
          await recordAudit(tx, actor, { action: 'model_provider.created', target: id, after: providerView(made) })
        return made
      })
      if (!row) throw tooMany(org_id)
      return providerView(row)
    },
  })

  handle(app, http, operations.listModelProviders, {
    run: async ({ sql, principal, waits }) => {
      waits()
      const { default_model } = config
      const own = await listOwnProviders(sql, principal.org_id)
      const { service, organization } = await modelProviders(own.map((row) => organizationModels.open(row)))
      const replaced = new Set(own.filter(({ projects }) => projects === null).map(({ name }) => name))
      const default_provider =
        own.find(({ name }) => name === 'openai')?.name ??
        service.find(({ is_default }) => is_default)?.name ??
        own[0]?.name
      const use = await listProviderUse(sql, principal.org_id, { default_model, default_provider })
      const all = [
        ...service.map((state) => ({
          place: state.name,
          ...{ ...state, own: null, is_default: state.name === default_provider && !replaced.has(state.name) },
        })),
        ...own.map((row, i) => ({
          place: row.id,
          ...{ ...organization[i]!, own: providerView(row), is_default: row.name === default_provider },
        })),
      ]
      const model_providers = all
        .map(({ place, ...provider }) => {
          const {
            agents = [],
            agents_total = 0,
            last_failure = null,
          } = use.find((found) => found.provider === place) ?? {}
          return { ...provider, agents, agents_total, last_failure }
        })
        .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.own ? -1 : 1))
      return { model_providers, default_model }
    },
  })

  handle(app, http, operations.getModelProvider, {
    load: loadProvider,
    run: async ({ loaded }) => providerView(loaded),
  })

  handle(app, http, operations.updateModelProvider, {
    load: loadProvider,
    run: async ({ sql, loaded, body, actor }) => {
      if (Object.values(body).every((member) => member === undefined))
        throw invalid({
          field: 'body',
          message: 'name, base_url, api_key, protocol, projects or prices is required',
          code: 'required',
        })
      const row = await sql.begin(async (tx) => {
        const before = await requireModelProvider(tx, loaded, { lock: true })
        const { api_key } = body
        const { name = before.name, base_url = before.base_url, protocol = before.protocol } = body
        const hasKey = (api_key === undefined ? before.api_key : api_key) !== null
        const provider = checkedProvider(egress, { name, base_url, protocol, hasKey, before: before.base_url })
        if (api_key === undefined && before.api_key !== null && goesElsewhere(before.base_url, provider.base_url))
          throw invalid({
            field: 'api_key',
            message: 'is required to change base_url to another host, so that a stored key cannot be sent there',
            code: 'required',
          })
        const projects =
          body.projects === undefined ? before.projects : await projectsOf(tx, before.org_id, body.projects)
        const key =
          api_key === undefined
            ? { api_key: before.api_key, key_preview: before.key_preview }
            : stored(api_key, before.id)
        const prices = body.prices === undefined ? before.prices : checkedPrices(body.prices ?? {})
        const content = { name, base_url: provider.base_url, protocol: provider.protocol, projects, prices, ...key }
        const changed = await updateModelProvider(tx, before, content)
        await recordAudit(tx, actor, {
          action: 'model_provider.updated',
          target: changed.id,
          before: providerView(before),
          after: providerView(changed),
          // Whether the key differs from the old one must stay secret, so a given key counts as a change.
          detail: api_key === undefined ? undefined : { is_key_changed: true },
        })
        return changed
      })
      return providerView(row)
    },
  })

  handle(app, http, operations.deleteModelProvider, {
    load: loadProvider,
    run: ({ sql, loaded, actor }) =>
      sql.begin(async (tx) => {
        if (!(await deleteModelProvider(tx, loaded)))
          throw notFound('model_provider_not_found', 'model_provider', loaded.id)
        await recordAudit(tx, actor, {
          action: 'model_provider.deleted',
          target: loaded.id,
          before: providerView(loaded),
        })
        return { message: 'Model provider deleted', model_provider_id: loaded.id }
      }),
  })

  handle(app, http, operations.testModelProvider, {
    load: loadProvider,
    run: async ({ sql, loaded, body, actor, waits }) => {
      waits()
      const { model } = body
      const result = await testProvider(organizationModels, loaded, model)
      const { ok, status, error } = result
      await recordAudit(sql, actor, {
        action: 'model_provider.tested',
        target: loaded.id,
        detail: { ok, status, error, model: model ?? null },
      })
      return { model_provider_id: loaded.id, ...result }
    },
  })
}

function loadProvider({ sql, params, principal }: Loading): Promise<ModelProviderRow> {
  return requireModelProvider(sql, { id: params.model_provider_id!, org_id: principal.org_id })
}

function tooMany(org_id: string): Problem {
  return new Problem(
    'resource_conflict',
    { resource_type: 'organization', resource_id: org_id },
    { message: `An organization may have at most ${bounds.model_providers_per_organization} model providers.` },
  )
}
