import type { Operation } from '../core/operation.ts'
import { receiveDelivery } from '../doors/hooks.ts'
import { operations } from '../operations.ts'

/** What the OpenAPI document describes: the operations, and the address to which senders of deliveries post. */
export const documented: readonly Operation[] = [...operations, receiveDelivery]
