import { useState, type FormEvent } from 'react'
import { Button } from '../../ui/button.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, TextInput } from '../../ui/forms/field.tsx'
import { Refusal, useFocusOnRefusal } from '../../ui/forms/refusal.ts'

/** What is wrong with a name, by the rule of the API (spec 2.1); undefined where nothing is. */
export function nameFault(name: string): string | undefined {
  if (name.length < 3) return 'At least 3 characters'
  if (name.length > 50) return 'At most 50 characters'
  if (!/^[A-Za-z0-9-]+$/.test(name)) return 'Only letters, digits and hyphens'
  return /^-|-$/.test(name) ? 'It begins and ends with a letter or digit' : undefined
}

/** Asks for the name of a project, and says as one types whether it is one. */
export function ProjectNameDialog({
  title,
  action,
  name = '',
  save,
  close,
}: {
  title: string
  action: string
  name?: string
  save: (name: string) => Promise<void>
  close: () => void
}) {
  const mayNot = useDisabledReason('projects')
  const [text, setText] = useState(name)
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const form = useFocusOnRefusal(error)
  const fault = nameFault(text)
  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      await save(text)
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog isOpen close={close} title={title} refused={mayNot}>
      <form ref={form} className="space-y-4" onSubmit={(event) => void submit(event)}>
        <Refusal value={error}>
          <Field
            field="name"
            label="Name"
            hint="3 to 50 letters, digits and hyphens; unique in the organization."
            fault={text === '' ? undefined : fault}
          >
            <TextInput
              autoFocus
              autoComplete="off"
              spellCheck={false}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </Field>
        </Refusal>
        <ErrorBox error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={isBusy || fault !== undefined}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
