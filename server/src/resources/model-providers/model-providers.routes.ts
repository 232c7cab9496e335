import type { FastifyInstance } from 'fastify'
import { listModelProviders } from '#contract/models/model-providers.ts'
import type { Context } from '../../context.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { listProviderUse } from './provider-use.queries.ts'

/** Where models come from, and whether it answers. */
export function modelProviderRoutes(
  app: FastifyInstance,
  http: HttpContext,
  { config, modelProviders }: Pick<Context, 'config' | 'modelProviders'>,
): void {
  handle(app, http, listModelProviders, {
    run: async ({ sql, principal, waits }) => {
      waits()
      const providers = await modelProviders()
      const { default_model } = config
      const default_provider = providers.find(({ is_default }) => is_default)?.name
      const use = await listProviderUse(sql, principal.org_id, { default_model, default_provider })
      const model_providers = providers.map((provider) => {
        const {
          agents = [],
          agents_total = 0,
          last_failure = null,
        } = use.find((one) => one.provider === provider.name) ?? {}
        return { ...provider, agents, agents_total, last_failure }
      })
      return { model_providers, default_model }
    },
  })
}
