import type { modelProviderKinds } from '#contract/models/model-providers.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'

/** Who answers at an address: a native provider itself, or any server that speaks the OpenAI protocol. */
export type ProviderKind = Exclude<(typeof modelProviderKinds)[number], 'builtin'>

/** A provider as the operator configured it. */
export interface Provider {
  name: string
  kind: ProviderKind
  base_url: string
  api_key: string | undefined
  protocol: ModelProtocol
}
