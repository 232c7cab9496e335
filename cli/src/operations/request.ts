import { operations } from '#contract/operations.ts'
import { fillPath } from '#sdk/operation.ts'
import type { Context } from '../context.ts'

/** A request as `--dry-run` prints it. */
export interface DryRequest {
  method: string
  path: string
  body?: unknown
}

/** The path of an operation with its ids. The project is a setting, unless `hasProject` says that it is the first id. */
export async function pathOf(
  path: string,
  context: Pick<Context, 'project'>,
  ids: readonly (string | undefined)[],
  hasProject = false,
): Promise<string> {
  const given = [...ids]
  if (path.includes('{project_id}')) {
    if (!hasProject) given.unshift(undefined)
    given[0] ??= await context.project()
  }
  return fillPath(path, given)
}

/** The request of an operation, for commands that are not made from one. */
export async function requestOf(
  context: Pick<Context, 'project'>,
  operation_id: string,
  ids: readonly string[],
  body?: unknown,
): Promise<DryRequest> {
  const { method, path } = operations.find(({ id }) => id === operation_id)!
  return { method, path: await pathOf(path, context, ids), body }
}
