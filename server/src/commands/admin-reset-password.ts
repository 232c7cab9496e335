import { passwordError, passwordErrors } from '../platform/crypto/password-rules.ts'
import { createPasswords } from '../platform/crypto/passwords.ts'
import { newPassword } from '../first-start.ts'
import { resetPassword } from '../resources/users/reset-password.ts'
import { findUserForSignIn, type SignInRow } from '../resources/users/users.queries.ts'
import { askSecret } from './ask-secret.ts'
import { CommandError, defineCommand } from './command.ts'
import { withInstallation } from './installation.ts'

/** `cadre admin reset-password <email>`: sets a new password for a user. */
export const adminResetPassword = defineCommand({
  summary: "Sets a user's password",
  description:
    'Asks for the new password, twice and without showing it, or reads it from the first line of standard input where that is no ' +
    'terminal. It must follow the rules that hold for everybody. All sessions of the user and the access of all their OAuth ' +
    'apps end at once; API keys stay as they are. The audit log records it.\n' +
    'Works while the service runs, and when it does not.',
  arguments: [{ name: 'email', description: 'The address that the user signs in with.' }],
  options: {
    generate: {
      type: 'boolean',
      description: 'Makes a password, and prints it to standard output: once, it is kept nowhere.',
    },
  },
  run: async (call) => {
    const { email } = call.arguments
    const { generate } = call.options
    const ended = await withInstallation(call, { schema: 'current' }, async ({ sql }) => {
      const user = await findUserForSignIn(sql, email)
      if (!user) throw new CommandError(`There is no active user with the address ${email}.`)
      const password = generate ? newPassword() : await chosen(user, call.signal)
      const sessions_ended = await resetPassword(sql, user, await createPasswords().hash(password))
      if (sessions_ended === undefined)
        throw new CommandError(
          'The password was changed by another process at the same time. Nothing was done; run it again.',
        )
      if (generate) call.print(password)
      return sessions_ended
    })
    call.note(`The password of ${email} was set; ${endings(ended)}.`)
    return 0
  },
})

async function chosen({ email }: SignInRow, signal: AbortSignal): Promise<string> {
  const password = await askSecret('New password', signal)
  const fault = passwordError(password, email)
  if (fault) throw new CommandError(`The password ${passwordErrors[fault]}.`)
  return password
}

function endings(count: number): string {
  if (count === 0) return 'there were no sessions to end'
  return count === 1 ? 'one session was ended' : `${count} sessions were ended`
}
