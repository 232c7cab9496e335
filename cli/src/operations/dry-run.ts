import { operations } from '#contract/operations.ts'
import { fillPath } from '#sdk/operation.ts'
import type { Context } from '../context.ts'

/** A request as `--dry-run` prints it. */
export interface DryRequest {
  method: string
  path: string
  body?: unknown
}

/**
 * The request of an operation, for commands that are not made from one: `ids` are those of its path after the project's.
 */
export async function requestOf(
  context: Pick<Context, 'project'>,
  operation_id: string,
  ids: readonly string[],
  body?: unknown,
): Promise<DryRequest> {
  const { method, path } = operations.find(({ id }) => id === operation_id)!
  const project = path.includes('{project_id}') ? [await context.project()] : []
  return { method, path: fillPath(path, [...project, ...ids]), body }
}
