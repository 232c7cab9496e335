import type { modelProviderKinds } from '#contract/models/model-providers.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'
import type { PriceTable } from '#contract/models/price-table.ts'

/** Who answers at an address: a native provider itself, or any server that speaks the OpenAI protocol. */
export type ProviderKind = Exclude<(typeof modelProviderKinds)[number], 'builtin'>

/** A provider as the operator configured it, or as an organization added it. */
export interface Provider {
  /** Of an organization's own: which one, and in which state of its settings. */
  owner?: { id: string; revision: string; prices: PriceTable }
  name: string
  kind: ProviderKind
  base_url: string
  api_key: string | undefined
  protocol: ModelProtocol
}

/** Whose turns go back to a provider: what one of an organization's wrote goes to no other, whatever its name is. */
export function turnOwner({ owner, name }: Provider): string {
  return owner?.id ?? name
}
