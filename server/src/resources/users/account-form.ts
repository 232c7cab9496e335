import { invalid, issuesOf, type Issue } from '#contract/core/problems.ts'
import { NewAccount, passwordLength } from '#contract/accounts/users.ts'
import { toProblem } from '../../http/errors.ts'
import type { Html } from '../../http/pages/html.ts'
import { field, type Field } from '../../http/pages/page.ts'
import { check } from '../../http/validation.ts'
import { sentence } from './pages.ts'

/** Input of the account form, shown again after an error. */
export interface TypedAccount {
  email?: string
  /** Whether the user cannot change the address. */
  isEmailFixed?: boolean
  name?: string
  issues?: readonly Issue[]
  /** Whether the first field gets the focus; false where the page has something to read first. */
  focus?: boolean
}

/** The fields of the sign-up form, each with its error. */
export function accountFields(typed: TypedAccount): Html[] {
  const { email = '', isEmailFixed = false, name = '', issues = [], focus = true } = typed
  const fields: Field[] = [
    { name: 'name', label: 'Name', type: 'text', autocomplete: 'name', value: name },
    {
      name: 'email',
      label: 'E-mail address',
      type: 'email',
      autocomplete: 'username',
      value: email,
      isFixed: isEmailFixed,
    },
    {
      name: 'password',
      label: 'Password',
      type: 'password',
      autocomplete: 'new-password',
      hint: `At least ${passwordLength.min} characters. A few unrelated words work well.`,
    },
  ]
  const faults = new Map(issues.map((issue) => [issue.field, issue.message.replace(`${issue.field} `, '')]))
  // The first field with an error gets the focus.
  const first = fields.find((one) => faults.has(one.name)) ?? (focus ? fields[0] : undefined)
  return fields.map((shown) => {
    const message = faults.get(shown.name)
    return field({ ...shown, focus: shown === first, fault: message && `${shown.label} ${message}.` })
  })
}

/** Reads the typed account and trims it; throws `validation_error` with every error. */
export function readAccount({ email, password, name }: { email: string; password: string; name: string }) {
  const account = { email: email.trim(), password, name: name.trim() }
  const [first, ...others] = check(NewAccount, account)
  if (first) throw invalid(first, ...others)
  return account
}

/** The errors to show in the form when no account could be created; rethrows errors that are not the user's fault. */
export function accountErrors(error: unknown): { status: number; fault: string; issues: readonly Issue[] } {
  const problem = toProblem(error)
  if (problem.status === 500) throw error
  const issues = issuesOf(problem)
  const fault = issues.length > 0 ? 'Please correct the fields marked below.' : sentence(problem)
  return { status: problem.status, fault, issues }
}
