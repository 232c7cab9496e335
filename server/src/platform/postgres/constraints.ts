import { notFound, Problem } from '#contract/core/problems.ts'
import { resourceTypes, type ResourceTypeName } from '#contract/core/resource-types.ts'
import { brokenConstraint, type Sql } from './database.ts'

/** The error for each constraint by name. */
export type ConstraintAnswers = Readonly<Record<string, () => Error | Promise<Error>>>

/** Runs `statement`. If it violates a constraint that `answers` names, throws that error instead. */
export async function answerConstraints<T>(answers: ConstraintAnswers, statement: () => Promise<T>): Promise<T> {
  try {
    return await statement()
  } catch (error) {
    const answer = answers[brokenConstraint(error) ?? '']
    throw answer ? await answer() : error
  }
}

/** A name that is unique among the resources of its owner. */
export interface UniqueName {
  resource_type: ResourceTypeName
  name: string
  owner: { resource_type: 'project' | 'agent' | 'organization'; id: string }
  /** The id of the resource that has the name now; undefined if it is free again. */
  findId: () => Promise<string | undefined>
}

/**
 * Runs a statement that writes a unique name, in a savepoint, so that the surrounding transaction stays usable.
 * @throws `resource_conflict` if another row has the name, or a 404 if the owner was deleted meanwhile
 */
export function writeUniqueName<T>(
  sql: Sql,
  { resource_type, name, owner, findId }: UniqueName,
  statement: (tx: Sql) => Promise<T>,
): Promise<T> {
  return answerConstraints(
    {
      [`${resource_type}_${owner.resource_type}_id_fkey`]: () =>
        notFound(`${owner.resource_type}_not_found`, owner.resource_type, owner.id),
      [`${resource_type}_name`]: async () => nameConflict({ resource_type, name, owner }, await findId()),
    },
    () => sql.begin(statement),
  )
}

/** The `resource_conflict` for a name that another resource has. */
export function nameConflict(
  { resource_type, name, owner }: Omit<UniqueName, 'findId'>,
  resource_id: string | undefined,
): Problem {
  return new Problem(
    'resource_conflict',
    {
      resource_type,
      ...(resource_id === undefined ? {} : { resource_id }),
      conflicting_field: 'name',
      conflicting_value: name,
    },
    {
      message: `A ${resourceTypes[resource_type].name} of this name exists ${owner.resource_type === 'agent' ? 'for the agent' : `in the ${owner.resource_type}`}.`,
    },
  )
}
