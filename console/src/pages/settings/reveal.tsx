import { type ReactNode, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { download } from '../parts/download.ts'
interface Revealed {
  title: string
  secret: string
  /** What the file is called that it can be saved as. */
  file: string
  children?: ReactNode
  done: () => void
}

/**
 * Shows a secret the only time that it can be shown. It closes only for somebody who says that it is saved; it is in no address,
 * no store and no cache, so leaving the page forgets it.
 */
export function Reveal({ title, secret, file, children, done }: Revealed) {
  const [isSaved, setSaved] = useState(false)
  const [isAsked, setAsked] = useState(false)
  return (
    <Dialog title={title} isOpen close={() => (isSaved ? done() : setAsked(true))}>
      <p className="mb-3">
        This is the only time that it is shown. Keep it in a password manager or among your platform’s secrets; never in
        code.
      </p>
      <output
        data-testid="secret"
        aria-label="The secret"
        className="block rounded-md border border-line bg-quiet p-3 font-mono break-all select-all"
      >
        {secret}
      </output>
      <div className="my-3 flex flex-wrap gap-2">
        <CopyButton text={secret} label="Copy the secret">
          Copy
        </CopyButton>
        <Button onClick={() => download(file, `${secret}\n`)}>Download</Button>
      </div>
      {children}
      <Checkbox
        className="mt-4"
        label="I have saved it"
        checked={isSaved}
        onChange={(event) => setSaved(event.target.checked)}
      />
      {isAsked && !isSaved && (
        <p role="alert" className="mt-2 text-bad">
          Save it first, and say so: nobody can show it again.
        </p>
      )}
      <div className="mt-4 flex justify-end">
        <Button kind="primary" onClick={done} reason={isSaved ? undefined : 'Say first that you have saved it'}>
          Done
        </Button>
      </div>
    </Dialog>
  )
}
