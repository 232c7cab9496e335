import type { modelProviderKinds } from '#contract/models/model-providers.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'
import type { PriceTable } from '#contract/models/price-table.ts'

/** What answers at an address: a native provider itself, or any server with a protocol of OpenAI. */
export type ProviderKind = Exclude<(typeof modelProviderKinds)[number], 'builtin'>

/** A provider that the operator configured or an organization added. */
export interface Provider {
  /** For an organization's provider: its id, the revision of its settings, and the prices of its models. */
  owner?: { id: string; revision: string; prices: PriceTable }
  name: string
  kind: ProviderKind
  base_url: string
  api_key: string | undefined
  protocol: ModelProtocol
}

/**
 * The owner of a provider's turns: turns of an organization's provider are sent to no other, even one with the same
 * name.
 */
export function turnOwner({ owner, name }: Provider): string {
  return owner?.id ?? name
}
