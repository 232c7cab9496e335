import { notFound, Problem } from '#contract/core/problems.ts'
import { resourceTypes, type ResourceTypeName } from '#contract/core/resource-types.ts'
import { brokenConstraint, type Sql } from './database.ts'

/** What a statement fails with where it breaks a constraint of this name. */
export type ConstraintAnswers = Readonly<Record<string, () => Error | Promise<Error>>>

/** The result of `statement`; where it breaks a constraint that `answers` names, that answer is thrown in its place. */
export async function answerConstraints<T>(answers: ConstraintAnswers, statement: () => Promise<T>): Promise<T> {
  try {
    return await statement()
  } catch (error) {
    const answer = answers[brokenConstraint(error) ?? '']
    throw answer ? await answer() : error
  }
}

/** A name of which its owner can have one. */
export interface UniqueName {
  resource_type: ResourceTypeName
  name: string
  owner: { resource_type: 'project' | 'agent' | 'organization'; id: string }
  /** Who has the name now; undefined where it is free again. */
  findId: () => Promise<string | undefined>
}

/**
 * Runs a statement that writes a unique name. Throws `resource_conflict` where another row has the name, and a 404
 * where the owner was deleted meanwhile. Runs in a savepoint, so that the surrounding transaction stays usable.
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

/** What a name that another row has is refused with. */
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
