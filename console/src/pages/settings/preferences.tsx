import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api } from '../../api/client.ts'
import { permissionsQuery, userQuery } from '../../api/queries.ts'
import { ShortcutList } from '../../shell/shortcut-list.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SelectInput, TextInput } from '../../ui/forms/field.tsx'
import { Facts, PageHeader, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { tell } from '../../ui/toast.tsx'
import { ZonePicker } from '../../ui/forms/zone-picker.tsx'
import type { Form } from '../../format.ts'
import { traceAddressFault } from '../../trace-address.ts'
import { scopeWords, type Scope } from './scope-presets.ts'
import { usePreference } from '../../preferences.ts'

/** Who is signed in, what they may do, and how the console looks to them. */
export default function PreferencesPage() {
  const user = useQuery(userQuery)
  const permissions = useQuery(permissionsQuery)
  const [theme, setTheme] = usePreference('theme')
  const [zone, setZone] = usePreference('time_zone')
  const [form, setForm] = usePreference('date_form')
  const [language, setLanguage] = usePreference('language')
  const [trace_url] = usePreference('trace_url')
  return (
    <>
      <PageHeader title="Preferences" actions={<CopyAsCurl path="/api/v1/auth/user" />} />
      <ErrorBox error={user.error ?? permissions.error} />
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
        <Panel title="You">
          {user.data ? (
            <div className="space-y-4 p-4">
              <ProfileForm key={`${user.data.name} ${user.data.avatar_url}`} before={user.data} />
              <Facts>
                <dt>ID</dt>
                <dd>
                  <CopyId id={user.data.id} />
                </dd>
                <dt>Organizations</dt>
                <dd>{user.data.organizations.map(({ name, role }) => `${name} (${role})`).join(', ')}</dd>
              </Facts>
            </div>
          ) : (
            <Skeleton rows={3} />
          )}
        </Panel>
        <Panel title="Appearance">
          <p className="px-4 pt-4 text-sm text-soft">Saved with your account, for every browser you sign in with.</p>
          <div className="grid grid-cols-1 gap-4 p-4 sm:grid-cols-2">
            <Field label="Theme">
              <SelectInput value={theme} onChange={(event) => setTheme(event.target.value as typeof theme)}>
                <option value="system">As the system</option>
                <option value="light">Light</option>
                <option value="dark">Dark</option>
              </SelectInput>
            </Field>
            <div>
              <p className="mb-1 font-medium">Time zone</p>
              <ZonePicker label="Time zone" value={zone} onChange={setZone} hasLocal />
            </div>
            <Field label="Language" hint="The console speaks English so far.">
              <SelectInput value={language} onChange={(event) => setLanguage(event.target.value as typeof language)}>
                <option value="en">English</option>
              </SelectInput>
            </Field>
            <Field label="Dates and numbers">
              <SelectInput value={form} onChange={(event) => setForm(event.target.value as Form)}>
                <option value="day">24 Nov 2026, 14:08 · 1,234.5</option>
                <option value="month">Nov 24, 2026, 02:08 PM · 1,234.5</option>
                <option value="iso">2026-11-24 14:08 · 1 234,5</option>
              </SelectInput>
            </Field>
            <TraceForm key={trace_url} />
          </div>
        </Panel>
        <Panel title="Your permissions">
          {permissions.data ? (
            <>
              <Permissions permissions={permissions.data.permissions} />
              <ScopesInWords scopes={permissions.data.scopes} />
            </>
          ) : (
            <Skeleton rows={4} />
          )}
        </Panel>
        <Panel title="Keyboard shortcuts">
          <ShortcutList className="p-4" />
        </Panel>
      </div>
    </>
  )
}

/** The name and the picture of a user, as others get them from the API. */
function ProfileForm({ before }: { before: { name: string; avatar_url: string } }) {
  const queries = useQueryClient()
  const [name, setName] = useState(before.name)
  const [avatar_url, setAvatar] = useState(before.avatar_url)
  const [error, setError] = useState<unknown>()
  const fault = avatar_url === '' || /^https?:\/\/\S+$/.test(avatar_url) ? undefined : 'Give an http or https address.'
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setError(undefined)
    try {
      await api.user.update({ name, avatar_url })
      await queries.invalidateQueries({ queryKey: userQuery.queryKey })
      tell('Your profile was saved')
    } catch (failure) {
      setError(failure)
    }
  }
  const isSame = name === before.name && avatar_url === before.avatar_url
  return (
    <form onSubmit={(event) => void save(event)} className="space-y-3">
      <Field label="Name" hint="Shown to others beside what you do.">
        <TextInput value={name} onChange={(event) => setName(event.target.value)} autoComplete="name" />
      </Field>
      <Field
        label="Address of your picture"
        fault={fault}
        hint="For apps that read your profile. The console loads nothing from other hosts, so it shows your initials."
      >
        <TextInput
          value={avatar_url}
          onChange={(event) => setAvatar(event.target.value.trim())}
          placeholder="https://example.com/me.png"
          autoComplete="photo"
        />
      </Field>
      <ErrorBox error={error} />
      <Button type="submit" disabled={isSame || name.trim() === '' || fault !== undefined}>
        Save
      </Button>
    </form>
  )
}

function TraceForm() {
  const [kept, keep] = usePreference('trace_url')
  const [address, setAddress] = useState(kept)
  const fault = traceAddressFault(address)
  return (
    <form
      className="space-y-3 sm:col-span-2"
      onSubmit={(event) => {
        event.preventDefault()
        keep(address)
        tell(address === '' ? 'Trace links are off' : 'Trace links are on')
      }}
    >
      <Field
        label="Address of a trace"
        fault={fault}
        hint="Where your collector shows traces, with {trace_id} in it: tasks with a trace then have a link to it."
      >
        <TextInput
          value={address}
          onChange={(event) => setAddress(event.target.value.trim())}
          placeholder="https://jaeger.example.com/trace/{trace_id}"
          autoComplete="off"
        />
      </Field>
      <Button type="submit" disabled={address === kept || fault !== undefined}>
        Save the address
      </Button>
    </form>
  )
}

/** The scopes of this sign-in, as apps that ask for them tell it. */
function ScopesInWords({ scopes }: { scopes: readonly Scope[] }) {
  return (
    <div className="border-t border-line p-4">
      <h3 className="mb-2 text-sm font-medium">Scopes of your role</h3>
      <ul className="space-y-1.5">
        {scopes.map((scope) => (
          <li key={scope} className="flex flex-wrap items-baseline justify-between gap-x-4">
            <span>
              {scope === 'admin' ? 'Administer the organization: members, apps, audit log' : scopeWords[scope]}
            </span>
            <code className="text-soft">{scope}</code>
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Rights by what they are of; in words, for a mark alone tells nothing to who cannot see it. */
function Permissions({ permissions }: { permissions: object }) {
  const kinds = ['read', 'write', 'delete'] as const
  return (
    <div className="overflow-x-auto">
      <table className="w-full">
        <thead>
          <tr className="border-b border-line text-left text-sm text-soft">
            <th scope="col" className="px-4 py-2 font-medium">
              Resource
            </th>
            {kinds.map((kind) => (
              <th key={kind} scope="col" className="px-4 py-2 font-medium capitalize">
                {kind}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Object.entries(permissions as Record<string, Record<string, boolean>>).map(([of, rights]) => (
            <tr key={of} className="border-b border-line last:border-0">
              <th scope="row" className="px-4 py-2 text-left font-normal">
                {of === 'api_keys' ? 'API keys' : `${of.charAt(0).toUpperCase()}${of.slice(1)}`}
              </th>
              {kinds.map((kind) => (
                <td key={kind} className={`px-4 py-2 ${rights[kind] ? '' : 'text-soft'}`}>
                  {rights[kind] === undefined ? '–' : rights[kind] ? 'yes' : 'no'}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
