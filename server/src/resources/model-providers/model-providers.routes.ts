import type { FastifyInstance } from 'fastify'
import { listModelProviders } from '#contract/models/model-providers.ts'
import type { Context } from '../../context.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'

/** Where models come from, and whether it answers. */
export function modelProviderRoutes(
  app: FastifyInstance,
  http: HttpContext,
  { config, modelProviders }: Pick<Context, 'config' | 'modelProviders'>,
): void {
  handle(app, http, listModelProviders, {
    run: async () => ({ model_providers: await modelProviders(), default_model: config.default_model }),
  })
}
