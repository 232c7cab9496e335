import { useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { roleDescriptions, type Role } from '#contract/core/scopes.ts'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SelectInput, TextInput } from '../../ui/forms/field.tsx'
import { Refusal, useFocusOnRefusal } from '../../ui/forms/refusal.ts'
import { Reveal } from './reveal.tsx'

/** Makes a link that lets one person in, and shows it once: the service sends no mail. */
export function InviteDialog({
  isOpen,
  close,
  roles,
  refused,
}: {
  isOpen: boolean
  close: () => void
  /** Those that the one who invites can give. */
  roles: readonly Role[]
  /** Why the one who looks may not. */
  refused: string | undefined
}) {
  const queries = useQueryClient()
  const [role, setRole] = useState<Role>('member')
  const [email, setEmail] = useState('')
  const [error, setError] = useState<unknown>()
  const [url, setUrl] = useState<string>()
  const form = useFocusOnRefusal(error)
  const end = (): void => {
    setUrl(undefined)
    setEmail('')
    setError(undefined)
    close()
  }
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setError(undefined)
    try {
      const made = await api.invitations.create({ role, ...(email === '' ? {} : { email }) })
      setUrl(made.url)
      await queries.invalidateQueries({ queryKey: ['members', 'invitations'] })
    } catch (failure) {
      setError(failure)
    }
  }
  if (url !== undefined)
    return (
      <Reveal
        title="Send this link"
        secret={url}
        lead={
          <>
            It works once: the person who opens it{email !== '' && <> as {email}</>} gets the role {role}.
          </>
        }
        saved="I have sent it, or saved it"
        done={end}
      />
    )
  return (
    <Dialog isOpen={isOpen} close={end} title="Invite a member" refused={refused}>
      <form ref={form} noValidate onSubmit={(event) => void submit(event)} className="space-y-4">
        <Refusal value={error}>
          <Field
            field="email"
            label="E-mail address"
            hint="Only an account with this address can use the link. Leave it empty for anyone with the link."
          >
            <TextInput
              type="email"
              value={email}
              onChange={(event) => setEmail(event.target.value)}
              autoComplete="off"
            />
          </Field>
        </Refusal>
        <Field label="Role" hint={`${roleDescriptions[role]}.`}>
          <SelectInput value={role} onChange={(event) => setRole(event.target.value as Role)}>
            {roles.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </SelectInput>
        </Field>
        <ErrorBox error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={end}>Cancel</Button>
          <Button kind="primary" type="submit">
            Create link
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
