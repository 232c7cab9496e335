import Type from 'typebox'
import { nativeProviderNames } from './native-providers.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Named, Nullable, Timestamp } from '../core/schemas.ts'

/** Where models come from: the service itself, or a server that speaks one of three protocols. */
export const modelProviderKinds = ['builtin', 'openai_compatible', ...nativeProviderNames] as const
/** How a provider answered when it was last asked. */
export const modelProviderStates = ['reachable', 'refused', 'unreachable'] as const

/** How long the answer of a provider is cached. */
export const providerCheck_seconds = 30

/** Models of one provider that are listed. */
export const providerModelsMax = 500

/** How a provider is used. */
export const providerUse = { agents: 20, failed_tasks: 100 } as const

const ModelProvider = Named(
  'ModelProvider',
  Type.Object({
    name: Type.String({ description: 'What stands before the slash in the names of its models.' }),
    kind: Choice(modelProviderKinds),
    is_default: Type.Boolean({ description: 'Whether models without a provider in their name are its.' }),
    has_key: Type.Boolean({ description: 'Whether the operator has given a key for it. The key is never shown.' }),
    status: Choice(modelProviderStates, {
      description:
        '`reachable`: it answered. `refused`: it answered that the key is wrong or may not. `unreachable`: it could not be connected to, was silent, or is failing.',
    }),
    error: Nullable(Type.String({ description: 'What is wrong, in words; null where nothing is.' })),
    models: Type.Array(Type.String(), {
      description: `Names for \`config.model\`, the first ${providerModelsMax} that the provider lists; empty where it lists none.`,
    }),
    checked_at: Timestamp,
    agents: Type.Array(Type.Object({ id: Type.String(), project_id: Type.String(), name: Type.String() }), {
      description: `Agents of the organization whose model it has, by name; the first ${providerUse.agents}.`,
    }),
    agents_total: Type.Integer({ minimum: 0, description: 'How many there are.' }),
    last_failure: Nullable(
      Type.Object(
        {
          at: Timestamp,
          project_id: Type.String(),
          task_id: Type.String(),
          code: Type.String(),
          message: Type.String(),
        },
        {
          description: `The newest task that failed at a call of it, among the newest ${providerUse.failed_tasks} failed ones of each project.`,
        },
      ),
    ),
  }),
)

export const listModelProviders = defineOperation({
  id: 'listModelProviders',
  command: 'model-providers list',
  sdk: 'service.modelProviders',
  method: 'GET',
  path: '/api/v1/model-providers',
  error_format: 'agents',
  tag: 'Model providers',
  summary: 'List model providers',
  description: `For owners and admins: the configured providers, whether each answers, and its models. A provider is queried when this is called, at most every ${providerCheck_seconds} seconds and for 5 seconds. Neither keys nor addresses are returned.`,
  credentials: anyCredential,
  scope: 'admin',
  bucket: 'general',
  extension: true,
  responses: [
    {
      status: 200,
      description: 'The providers, by name, and the model of agents that name none.',
      schema: Named(
        'ModelProviderList',
        Type.Object({ model_providers: Type.Array(ModelProvider), default_model: Type.String() }),
      ),
      example: {
        model_providers: [
          {
            name: 'openai',
            kind: 'openai',
            is_default: true,
            has_key: true,
            status: 'reachable',
            error: null,
            models: ['openai/gpt-5.6-sol'],
            checked_at: '2026-11-20T09:30:00.000Z',
            agents: [{ id: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4', project_id: 'proj_42', name: 'support' }],
            agents_total: 1,
            last_failure: null,
          },
        ],
        default_model: 'openai/gpt-5.6-sol',
      },
    },
  ],
  problems: [],
})

export const modelProviderOperations: Operation[] = [listModelProviders] as Operation[]
