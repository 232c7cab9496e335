import Type from 'typebox'
import { knownAddresses } from './known-addresses.ts'
import { modelProtocols, nativeProviderNames } from './native-providers.ts'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, Named, Nullable, Timestamp } from '../core/schemas.ts'

/** Kinds of model providers: built into the service, OpenAI-compatible, or native. */
export const modelProviderKinds = ['builtin', 'openai_compatible', ...nativeProviderNames] as const
/** Results of the latest check of a provider. */
export const modelProviderStates = ['reachable', 'refused', 'unreachable', 'unreadable'] as const

/** How long the result of a check is cached. */
export const providerCheck_seconds = 30

/** Maximum number of models that are listed per provider. */
export const providerModelsMax = 500

/** Bounds of the usage of a provider: agents that are listed, and failed tasks that are searched. */
export const providerUse = { agents: 20, failed_tasks: 100 } as const

/** Maximum duration of a test of a provider. */
export const providerTest_seconds = 20

/** Names that a provider of an organization cannot have. */
export const reservedProviderNames: readonly string[] = ['builtin']

const ownName = Type.String({
  minLength: 1,
  maxLength: bounds.model_provider_name,
  pattern: '^[a-z][a-z0-9-]*$',
  description:
    'The part of model names before the slash: lowercase letters, digits and `-`. Unique in the organization. With the name of a provider of the service, such as `openai`, it replaces that one.',
})
const base_url = Type.String({
  minLength: 1,
  maxLength: bounds.model_provider_url,
  format: 'http-url',
  description: `The URL before \`/chat/completions\`, \`/responses\` or \`/messages\`. Must be https unless the operator allows the host. Optional for ${[...nativeProviderNames, ...Object.keys(knownAddresses)].join(', ')}.`,
})
const api_key = Type.Unsafe<string>({
  type: 'string',
  minLength: 1,
  maxLength: bounds.model_provider_key,
  pattern: '^[\\x21-\\x7e]+$',
  'x-secret': true,
  description: 'The key. It is stored encrypted and never returned.',
})
const protocol = Choice(modelProtocols, {
  description:
    'The protocol of the provider. Default: Messages for `anthropic`, Responses for `openai` at its own address, otherwise Chat Completions.',
})
const Dollars = Type.Number({ minimum: 0, maximum: bounds.model_price_usd })
const rates = {
  input: Dollars,
  cached_input: Type.Optional({
    ...Dollars,
    description: 'Input that the provider reads from its cache. Default: the price of `input`.',
  }),
  cache_write: Type.Optional({
    ...Dollars,
    description: 'Input that the provider writes to its cache, if it charges for that.',
  }),
  output: Dollars,
}
const OwnModelPrice = Named(
  'OwnModelPrice',
  Type.Object(
    {
      ...rates,
      long: Type.Optional(
        Type.Object(
          { above_input_tokens: Type.Integer({ minimum: 0 }), ...rates },
          { description: 'Prices of a whole call whose input exceeds so many tokens.' },
        ),
      ),
    },
    { description: 'US dollars per million tokens.' },
  ),
)
const prices = Type.Unsafe<Record<string, Type.Static<typeof OwnModelPrice>>>({
  type: 'object',
  maxProperties: bounds.model_provider_prices,
  additionalProperties: OwnModelPrice,
  description:
    "Prices of the provider's models in US dollars per million tokens, by the provider's model names. They override the operator's and the built-in prices.",
})
/** Prices of one provider, by its model names. */
export type OwnPrices = Type.Static<typeof prices>

const projects = Nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: 32 }), {
    maxItems: bounds.model_provider_projects,
    description: 'The projects whose agents may use the provider, as `proj_42`. Null for all projects.',
  }),
)

const OrganizationModelProvider = Named(
  'OrganizationModelProvider',
  Type.Object({
    id: Type.String(),
    name: Type.String({ description: 'The part of model names before the slash.' }),
    kind: Choice(modelProviderKinds),
    protocol: Choice(modelProtocols),
    base_url: Type.String(),
    has_key: Type.Boolean({ description: 'Whether the provider has a key. The key is never returned.' }),
    key_preview: Nullable(
      Type.String({ description: 'The last four characters of the key; null if there is no key or it is short.' }),
    ),
    projects: Nullable(
      Type.Array(Type.String(), {
        description: 'The projects whose agents may use the provider. Null for all projects.',
      }),
    ),
    prices,
    created_by: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
)
const ownExample = {
  id: 'mprov_01jcm3x5v8f9a2b4c6d8e0g2h4',
  name: 'openai',
  kind: 'openai' as const,
  protocol: 'responses' as const,
  base_url: 'https://api.openai.com/v1',
  has_key: true,
  key_preview: '…wxyz',
  projects: ['proj_42'],
  prices: {},
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}

const ModelProvider = Named(
  'ModelProvider',
  Type.Object({
    name: Type.String({ description: 'The part of model names before the slash.' }),
    own: Nullable({
      ...OrganizationModelProvider,
      description: 'The settings of a provider of the organization; null for a provider of the service.',
    }),
    kind: Choice(modelProviderKinds),
    is_default: Type.Boolean({ description: 'Whether model names without a provider belong to this one.' }),
    has_key: Type.Boolean({ description: 'Whether the provider has a key. The key is never returned.' }),
    status: Choice(modelProviderStates, {
      description:
        '`reachable`: it responded. `refused`: it rejected the key. `unreachable`: the connection failed, timed out, or returned an error. `unreadable`: its key was encrypted with another `CADRE_SECRET_KEY`; set it again.',
    }),
    error: Nullable(Type.String({ description: 'Description of the error; null if there is none.' })),
    models: Type.Array(Type.String(), {
      description: `Names for \`config.model\`: the first ${providerModelsMax} that the provider lists; empty if it lists none.`,
    }),
    checked_at: Timestamp,
    agents: Type.Array(Type.Object({ id: Type.String(), project_id: Type.String(), name: Type.String() }), {
      description: `The first ${providerUse.agents} agents of the organization that use it, by name.`,
    }),
    agents_total: Type.Integer({ minimum: 0, description: 'Number of agents that use it.' }),
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
          description: `The newest task that failed because of the provider, among the newest ${providerUse.failed_tasks} failed tasks of each project.`,
        },
      ),
    ),
  }),
)

const common = {
  error_format: 'agents',
  tag: 'Model providers',
  credentials: anyCredential,
  bucket: 'general',
  extension: true,
} as const
const one = {
  ...common,
  path: '/api/v1/model-providers/{model_provider_id}',
  params: {
    model_provider_id: { description: 'A provider of the organization.', example: ownExample.id },
  },
} as const

export const listModelProviders = defineOperation({
  ...common,
  id: 'listModelProviders',
  command: 'model-providers list',
  sdk: 'modelProviders.list',
  method: 'GET',
  path: '/api/v1/model-providers',
  summary: 'List model providers',
  description: `The providers of the service and of the organization, with their status and models. The request checks each provider, at most once in ${providerCheck_seconds} seconds, and waits up to 5 seconds. Keys, and addresses of the service's providers, are not returned.`,
  scope: 'organizations:read',
  responses: [
    {
      status: 200,
      description: 'The providers by name, and the model of agents that set none.',
      schema: Named(
        'ModelProviderList',
        Type.Object({ model_providers: Type.Array(ModelProvider), default_model: Type.String() }),
      ),
      example: {
        model_providers: [
          {
            name: 'openai',
            own: ownExample,
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

export const createModelProvider = defineOperation({
  ...common,
  id: 'createModelProvider',
  audit: 'model_provider.created',
  command: 'model-providers create',
  sdk: 'modelProviders.create',
  method: 'POST',
  path: '/api/v1/model-providers',
  summary: 'Add a model provider',
  description:
    "For owners and admins. Adds a provider with the organization's own key. From the next model call on, agents of its projects use it instead of a provider of " +
    'the service with the same name. The provider is not contacted; use the test for that.',
  scope: 'organizations:write',
  body: Type.Object({
    name: ownName,
    base_url: Type.Optional(base_url),
    // Providers with a known address need only a key, so the command line asks for it.
    api_key: Type.Optional(Type.Unsafe<string>({ ...api_key, 'x-asked-without': 'base_url' })),
    protocol: Type.Optional(protocol),
    projects: Type.Optional(projects),
    prices: Type.Optional(Nullable(prices)),
  }),
  body_example: {
    name: 'acme',
    base_url: 'https://models.example.com/v1',
    api_key: 'sk-a-key-of-your-organization',
    prices: { 'qwen3-32b': { input: 0.1, output: 0.4 } },
  },
  responses: [
    {
      status: 201,
      description: 'The provider without its key.',
      schema: OrganizationModelProvider,
      example: { ...ownExample, projects: null },
    },
  ],
  problems: ['resource_conflict'],
})

export const getModelProvider = defineOperation({
  ...one,
  id: 'getModelProvider',
  command: 'model-providers get',
  sdk: 'modelProviders.get',
  method: 'GET',
  summary: 'Read a model provider',
  description: 'A provider of the organization, without its key.',
  scope: 'organizations:read',
  responses: [
    {
      status: 200,
      description: 'The provider without its key.',
      schema: OrganizationModelProvider,
      example: ownExample,
    },
  ],
  problems: ['model_provider_not_found'],
})

export const updateModelProvider = defineOperation({
  ...one,
  id: 'updateModelProvider',
  audit: 'model_provider.updated',
  command: 'model-providers update',
  sdk: 'modelProviders.update',
  method: 'PUT',
  summary: 'Change a model provider',
  description:
    'For owners and admins. Given members replace, absent members stay. Applies to model calls that start after the change, ' +
    'in every process. A `base_url` with another host requires `api_key` too, so that a stored key cannot be sent to another server.',
  scope: 'organizations:write',
  body: Type.Object({
    name: Type.Optional(ownName),
    base_url: Type.Optional(base_url),
    api_key: Type.Optional(
      Nullable(
        Type.Unsafe<string>({
          ...api_key,
          description: 'The key. It is stored encrypted and never returned; null removes it.',
        }),
      ),
    ),
    protocol: Type.Optional(protocol),
    projects: Type.Optional(projects),
    prices: Type.Optional(
      Nullable({ ...prices, description: 'Replaces all prices of the provider; null removes them.' }),
    ),
  }),
  body_example: { api_key: 'sk-another-key-of-your-organization' },
  responses: [
    {
      status: 200,
      description: 'The provider without its key.',
      schema: OrganizationModelProvider,
      example: { ...ownExample, updated_at: '2026-11-20T10:00:00.000Z' },
    },
  ],
  problems: ['model_provider_not_found', 'resource_conflict'],
})

export const deleteModelProvider = defineOperation({
  ...one,
  id: 'deleteModelProvider',
  audit: 'model_provider.deleted',
  command: 'model-providers delete',
  sdk: 'modelProviders.delete',
  method: 'DELETE',
  summary: 'Delete a model provider',
  description:
    'For owners and admins. Deletes its key too. Model calls with its name then use the provider of the service with the same name, or else fail with ' +
    '`provider_not_configured`.',
  scope: 'organizations:write',
  responses: [
    {
      status: 200,
      description: 'The provider is deleted.',
      schema: Confirmation({ model_provider_id: Type.String() }),
      example: { message: 'Model provider deleted', model_provider_id: ownExample.id },
    },
  ],
  problems: ['model_provider_not_found'],
})

export const testModelProvider = defineOperation({
  ...one,
  path: `${one.path}/test`,
  id: 'testModelProvider',
  audit: 'model_provider.tested',
  command: 'model-providers test',
  sdk: 'modelProviders.test',
  method: 'POST',
  summary: 'Test a model provider',
  description: `For owners and admins. Requests the provider's list of models or, with \`model\`, a one-word answer of that model, which the provider may charge for. Takes up to ${providerTest_seconds} seconds. A failure of the provider is a result, not an error of this request.`,
  scope: 'organizations:write',
  idempotent: false,
  body: Type.Object({
    model: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.config_model,
        description: "The model to call, by the provider's name.",
      }),
    ),
  }),
  body_example: {},
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The result of the test.',
      schema: Named(
        'ModelProviderTest',
        Type.Object({
          model_provider_id: Type.String(),
          ok: Type.Boolean({ description: 'Whether the test succeeded.' }),
          status: Choice(modelProviderStates),
          error: Nullable(Type.String({ description: 'Description of the error; null if there is none.' })),
          models: Type.Array(Type.String(), {
            description: 'Names for `config.model`; empty if the provider lists none, or if a model was called.',
          }),
          duration_ms: Type.Integer({ minimum: 0 }),
        }),
      ),
      example: {
        model_provider_id: ownExample.id,
        ok: true,
        status: 'reachable',
        error: null,
        models: ['openai/gpt-5.6-sol'],
        duration_ms: 412,
      },
    },
  ],
  problems: ['model_provider_not_found'],
})

export const modelProviderOperations: Operation[] = [
  createModelProvider,
  listModelProviders,
  getModelProvider,
  updateModelProvider,
  deleteModelProvider,
  testModelProvider,
] as Operation[]
