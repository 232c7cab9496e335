import { setTimeout as pause } from 'node:timers/promises'
import { APIConnectionError } from '#sdk/errors.ts'
import { openBrowser } from '../../config/loopback.ts'
import { requestOf } from '../../operations/request.ts'
import { define, type AddCommand } from '../../define.ts'
import { CommandFailure } from '../../failure.ts'
import { untilInterrupted } from '../../interrupt.ts'

/** Interval of polls for the connected credential. */
const poll_ms = 1000

/** `cadre credentials connect`. */
export const addCredentialsConnect: AddCommand = (program) =>
  define(program, 'credentials connect', {
    summary: 'Connect a credential with its issuer.',
    description:
      'Prints the URL at the issuer where you authorize the service, opens it in a browser if run in a terminal, and waits until ' +
      'the credential is connected. The browser must be signed in to the service as the same user. With --json the URL is ' +
      'printed to standard error.',
    args: ['<credential_id>'],
    examples: ['cadre credentials connect cred_01jcm3x5v8f9a2b4c6d8e0g2h4'],
    async run(context, [credential_id = '']) {
      if (context.options.dryRun)
        return context.out.json(await requestOf(context, 'authorizeCredential', [credential_id]))
      const project = await context.project()
      const { credentials } = context.client()
      await untilInterrupted(async (signal) => {
        const before = await credentials.get(project, credential_id, { signal })
        const { url, expires_at } = await credentials.authorize(project, credential_id, { signal })
        if (context.out.options.json) context.out.note(url)
        else context.out.line(url)
        if (context.out.options.isTerminal) openBrowser(url)
        while (Date.now() < Date.parse(expires_at)) {
          await pause(poll_ms, undefined, { signal })
          try {
            const now = await credentials.get(project, credential_id, { signal })
            if (now.status === 'connected' && now.connected_at !== before.connected_at) return context.out.entry(now)
          } catch (error) {
            if (!(error instanceof APIConnectionError)) throw error
          }
        }
        throw new CommandFailure(
          'The service was not authorized within 10 minutes.',
          `cadre credentials connect ${credential_id}`,
        )
      })
    },
  })
