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
  description:
    'Prompts twice for the new password without showing it. If standard input is not a terminal, reads the password from its first ' +
    'line. The password must follow the usual rules. Ends all sessions of the user and the access of their OAuth apps; API keys ' +
    'stay valid. The audit log records it.\n' +
    'Works whether or not the service runs.',
  examples: ['cadre admin reset-password owner@example.com', 'cadre admin reset-password owner@example.com --generate'],
  arguments: [{ name: 'email', description: 'Email address of the user.' }],
  options: {
    generate: {
      type: 'boolean',
      description: 'Generate a password and print it once to standard output.',
    },
  },
  run: async (call) => {
    const { email } = call.arguments
    const { generate } = call.options
    const ended = await withInstallation(call, { schema: 'current' }, async ({ sql }) => {
      const user = await findUserForSignIn(sql, email)
      if (!user) throw new CommandError(`No active user has the email address ${email}.`)
      const password = generate ? newPassword() : await chosen(user, call.signal)
      const sessions_ended = await resetPassword(sql, user, await createPasswords().hash(password))
      if (sessions_ended === undefined)
        throw new CommandError(
          'Another process changed the password at the same time. Nothing was changed; run the command again.',
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
  if (count === 0) return 'there were no sessions'
  return count === 1 ? '1 session ended' : `${count} sessions ended`
}
