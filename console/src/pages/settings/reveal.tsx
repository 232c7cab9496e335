import { type ReactNode, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Checkbox } from '../../ui/forms/field.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { UnsavedGuard } from '../parts/unsaved.tsx'

interface Revealed {
  title: string
  secret: string
  /** What the file is called that it can be saved as; without one it can be copied only. */
  file?: string
  /** What to do with it. */
  lead?: ReactNode
  /** The confirmation that it is saved. */
  saved?: string
  children?: ReactNode
  done: () => void
  /** What may come after `done`, such as the first use of the secret. */
  next?: { label: string; run: () => void }
}

/**
 * Shows a secret the only time that it can be shown. It closes only after the user confirms that it is saved, and
 * leaving the page before asks. The secret is in no address, store or cache, so leaving the page forgets it.
 */
export function Reveal({
  title,
  secret,
  file,
  lead = 'Keep it in a password manager or among your platform’s secrets; never in code.',
  saved = 'I have saved it',
  children,
  done,
  next,
}: Revealed) {
  const [isSaved, setSaved] = useState(false)
  const [isAsked, setAsked] = useState(false)
  const reason = isSaved ? undefined : `Check “${saved}” first`
  return (
    <Dialog title={title} isOpen close={() => (isSaved ? done() : setAsked(true))}>
      <p className="mb-3">It is shown only once. {lead}</p>
      <output
        data-testid="secret"
        aria-label={file === undefined ? 'The link' : 'The secret'}
        className="block rounded-md border border-line bg-quiet p-3 font-mono break-all select-all"
      >
        {secret}
      </output>
      <div className="my-3 flex flex-wrap gap-2">
        <CopyButton text={secret} label={file === undefined ? 'Copy the link' : 'Copy the secret'}>
          Copy
        </CopyButton>
        {file !== undefined && (
          <Button onClick={() => saveFile(file, 'text/plain;charset=utf-8', [`${secret}\n`])}>Download</Button>
        )}
      </div>
      {children}
      <Checkbox className="mt-4" label={saved} checked={isSaved} onChange={(event) => setSaved(event.target.checked)} />
      {isAsked && !isSaved && (
        <p role="alert" className="mt-2 text-bad">
          Save it first, and confirm that: it cannot be shown again.
        </p>
      )}
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        {next && (
          <Button
            reason={reason}
            onClick={() => {
              done()
              next.run()
            }}
          >
            {next.label}
          </Button>
        )}
        <Button kind="primary" onClick={done} reason={reason}>
          Done
        </Button>
      </div>
      <UnsavedGuard isUnsaved={() => !isSaved} isOfTab title="Leave without it?">
        You have not confirmed that it is saved. After you leave, it cannot be shown again.
      </UnsavedGuard>
    </Dialog>
  )
}
