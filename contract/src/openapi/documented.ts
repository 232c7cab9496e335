import type { Operation } from '../core/operation.ts'
import { receiveDelivery } from '../doors/hooks.ts'
import { operations } from '../operations.ts'

/** Everything that the OpenAPI document describes: the operations, and the endpoint for deliveries to triggers. */
export const documented: readonly Operation[] = [...operations, receiveDelivery]
