import Type from 'typebox'
import { knownAddresses } from './known-addresses.ts'
import { modelProtocols, nativeProviderNames } from './native-providers.ts'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, Named, Nullable, Timestamp } from '../core/schemas.ts'

/** Where models come from: the service itself, or a server that speaks one of three protocols. */
export const modelProviderKinds = ['builtin', 'openai_compatible', ...nativeProviderNames] as const
/** How a provider answered when it was last asked. */
export const modelProviderStates = ['reachable', 'refused', 'unreachable', 'unreadable'] as const

/** How long the answer of a provider is cached. */
export const providerCheck_seconds = 30

/** Models of one provider that are listed. */
export const providerModelsMax = 500

/** How a provider is used. */
export const providerUse = { agents: 20, failed_tasks: 100 } as const

/** Seconds that a test of a provider takes at most. */
export const providerTest_seconds = 20

/** Names of providers that an organization cannot have. */
export const reservedProviderNames: readonly string[] = ['builtin']

const ownName = Type.String({
  minLength: 1,
  maxLength: bounds.model_provider_name,
  pattern: '^[a-z][a-z0-9-]*$',
  description:
    'What stands before the slash in the names of its models: lowercase letters, digits and `-`. Unique in the organization. A name of one of the service, such as `openai`, takes its place.',
})
const base_url = Type.String({
  minLength: 1,
  maxLength: bounds.model_provider_url,
  format: 'http-url',
  description: `The address before \`/chat/completions\`, \`/responses\` or \`/messages\`; https, unless the operator allows the host. Known for ${[...nativeProviderNames, ...Object.keys(knownAddresses)].join(', ')}.`,
})
const api_key = Type.Unsafe<string>({
  type: 'string',
  minLength: 1,
  maxLength: bounds.model_provider_key,
  pattern: '^[\\x21-\\x7e]+$',
  'x-secret': true,
  description: 'Kept encrypted and never answered.',
})
const protocol = Choice(modelProtocols, {
  description:
    'How it is spoken to. Left out: as for the providers of the service: Messages for `anthropic`, Responses for `openai` at its own address, else Chat Completions.',
})
const Dollars = Type.Number({ minimum: 0, maximum: bounds.model_price_usd })
const rates = {
  input: Dollars,
  cached_input: Type.Optional({
    ...Dollars,
    description: 'Input that the provider had kept; as `input` where it is left out.',
  }),
  cache_write: Type.Optional({
    ...Dollars,
    description: 'Input that the provider keeps now, where it charges for that.',
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
          { description: 'The whole of a call whose input has more tokens than this is charged so.' },
        ),
      ),
    },
    { description: 'US dollars a million tokens.' },
  ),
)
const prices = Type.Unsafe<Record<string, Type.Static<typeof OwnModelPrice>>>({
  type: 'object',
  maxProperties: bounds.model_provider_prices,
  additionalProperties: OwnModelPrice,
  description:
    'Prices of its models in US dollars a million tokens, by the names that the provider gives them. They come before those of the operator and the built-in ones.',
})
/** Prices of models of one provider, by its names of them. */
export type OwnPrices = Type.Static<typeof prices>

const projects = Nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: 32 }), {
    maxItems: bounds.model_provider_projects,
    description: 'The projects whose agents may use it, as `proj_42`. Null: all of the organization.',
  }),
)

const OrganizationModelProvider = Named(
  'OrganizationModelProvider',
  Type.Object({
    id: Type.String(),
    name: Type.String({ description: 'What stands before the slash in the names of its models.' }),
    kind: Choice(modelProviderKinds),
    protocol: Choice(modelProtocols),
    base_url: Type.String(),
    has_key: Type.Boolean({ description: 'Whether it has a key. The key is never shown.' }),
    key_preview: Nullable(
      Type.String({ description: 'The last four characters of its key; null where it has none, or a short one.' }),
    ),
    projects: Nullable(
      Type.Array(Type.String(), {
        description: 'The projects whose agents may use it. Null: all of the organization.',
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
    name: Type.String({ description: 'What stands before the slash in the names of its models.' }),
    own: Nullable({
      ...OrganizationModelProvider,
      description: 'The settings of a provider of the organization; null where it is one of the service.',
    }),
    kind: Choice(modelProviderKinds),
    is_default: Type.Boolean({ description: 'Whether models without a provider in their name are its.' }),
    has_key: Type.Boolean({ description: 'Whether a key for it was given. The key is never shown.' }),
    status: Choice(modelProviderStates, {
      description:
        '`reachable`: it answered. `refused`: it answered that the key is wrong or may not. `unreachable`: it could not be connected to, was silent, or is failing. `unreadable`: its key was stored with another `CADRE_SECRET_KEY`; set it again.',
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
  description: `The providers of the service and those of the organization, whether each answers, and its models. A provider is queried when this is called, at most every ${providerCheck_seconds} seconds and for 5 seconds. No key is returned, and no address of a provider of the service.`,
  scope: 'organizations:read',
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
    'For owners and admins: a provider with a key of the organization. Its agents use it in place of one of the service with the same ' +
    'name, in the projects that it is enabled for, from their next model call on. Nothing is asked of the provider; the test does that.',
  scope: 'organizations:write',
  body: Type.Object({
    name: ownName,
    base_url: Type.Optional(base_url),
    // At a known address the key is all that there is to give, so the command line asks for it.
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
    'For owners and admins. Given members replace, missing ones stay. Model calls that begin afterwards ' +
    'use it, in every process. Only who knows the key may send it elsewhere: a `base_url` at another host takes `api_key` too.',
  scope: 'organizations:write',
  body: Type.Object({
    name: Type.Optional(ownName),
    base_url: Type.Optional(base_url),
    api_key: Type.Optional(
      Nullable(Type.Unsafe<string>({ ...api_key, description: 'Kept encrypted and never answered; null removes it.' })),
    ),
    protocol: Type.Optional(protocol),
    projects: Type.Optional(projects),
    prices: Type.Optional(
      Nullable({ ...prices, description: 'Takes the place of all prices that it has; null removes them.' }),
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
    'For owners and admins. Its key is gone. Model calls of its name go to the provider of the service that has it, or else fail with ' +
    '`provider_not_configured`.',
  scope: 'organizations:write',
  responses: [
    {
      status: 200,
      description: 'The provider is gone.',
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
  description: `For owners and admins. Asks the provider for its models, or, with \`model\`, for an answer of one word, which it may charge for. It takes ${providerTest_seconds} seconds at most. What the provider answers is the result, also where it fails.`,
  scope: 'organizations:write',
  idempotent: false,
  body: Type.Object({
    model: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.config_model,
        description: 'A model of it that is asked, as the provider names it.',
      }),
    ),
  }),
  body_example: {},
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'What the provider answered.',
      schema: Named(
        'ModelProviderTest',
        Type.Object({
          model_provider_id: Type.String(),
          ok: Type.Boolean({ description: 'Whether it answered as it should.' }),
          status: Choice(modelProviderStates),
          error: Nullable(Type.String({ description: 'What is wrong, in words; null where nothing is.' })),
          models: Type.Array(Type.String(), {
            description: 'Names for `config.model`; empty where it lists none, or a model was asked.',
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
