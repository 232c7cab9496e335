import { CodeBlock } from '../../ui/copy.tsx'
import { Reveal } from '../settings/reveal.tsx'
import { tryCurl } from './try-curl.ts'
import type { MadeTrigger } from '#sdk/types.ts'

/** The address of a trigger, and its secret where it was made by the service, the only time that they can be shown. */
export function RevealedTrigger({ made, done }: { made: MadeTrigger; done: () => void }) {
  const { id, source, hmac, url, secret } = made
  const commands = tryCurl({ source, hmac, url, secret })
  return (
    <Reveal
      title="Save the address"
      secret={url}
      file={`${id}.address`}
      lead="The sender posts to this address. Keep it like a password."
      done={done}
    >
      {secret !== undefined && (
        <>
          <p className="mt-3 mb-1 font-medium">Signing secret of the sender</p>
          <CodeBlock text={secret} label="Copy the secret of the sender" />
        </>
      )}
      {commands !== undefined && (
        <>
          <p className="mt-3 mb-1 font-medium">Try it in a shell</p>
          {secret === undefined && <p className="mb-1 text-sm text-soft">Set SECRET to the secret first.</p>}
          <CodeBlock text={commands} label="Copy the commands" />
        </>
      )}
    </Reveal>
  )
}
