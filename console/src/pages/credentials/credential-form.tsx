import { useState } from 'react'
import type { NewCredential } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { Choices } from '../../ui/forms/choices.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import { Field, SecretInput, SelectInput, storedSecretHint, TextInput } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { Options } from '../parts/options.tsx'

type Way = 'secret' | 'mcp' | 'issuer' | 'endpoints'
const ways = [
  ['secret', 'Secret'],
  ['mcp', 'OAuth of an MCP server'],
  ['issuer', 'OAuth issuer'],
  ['endpoints', 'OAuth endpoints'],
] as const
const leads: Record<Way, string> = {
  secret: 'An API key, password or token.',
  mcp: 'Cadre finds the issuer of the server and registers there. You connect it in the browser.',
  issuer: 'The service reads the issuer’s metadata, asks for access tokens and renews them.',
  endpoints: 'For an issuer without metadata.',
}

/** Where the address of each way goes in the request. */
const addressFields = { mcp: 'mcp_url', issuer: 'issuer', endpoints: 'token_endpoint' } as const

/** A new credential: its value goes to the service and never comes back. */
export function CredentialForm({
  error,
  isBusy,
  submit,
}: {
  error: unknown
  isBusy: boolean
  submit: (body: NewCredential) => void
}) {
  const [way, setWay] = useState<Way>('secret')
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const [address, setAddress] = useState('')
  const [authorization, setAuthorization] = useState('')
  const [client_id, setClient] = useState('')
  const [client_secret, setSecret] = useState('')
  const [scopes, setScopes] = useState('')
  const [hosts, setHosts] = useState('')
  const [grant, setGrant] = useState<NonNullable<NewCredential['grant']>>('authorization_code')
  const isClient = way === 'issuer' || way === 'endpoints'
  const missing = !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)
    ? 'Enter a name of letters, digits and _'
    : way === 'secret'
      ? value === ''
        ? 'Enter the secret'
        : undefined
      : address.trim() === ''
        ? 'Enter the address'
        : isClient && client_id.trim() === ''
          ? 'Enter the client ID'
          : way === 'endpoints' && grant === 'authorization_code' && authorization.trim() === ''
            ? 'Enter the authorization endpoint'
            : undefined
  const reason =
    missing ?? (way !== 'mcp' && hostsOf(hosts).length === 0 ? 'Enter the hosts it may be sent to' : undefined)
  const allowed_hosts = hostsOf(hosts)
  const body = (): NewCredential => {
    if (way === 'secret') return { name, type: 'secret', value, allowed_hosts }
    const asked = scopes.split(/\s+/).filter((scope) => scope !== '')
    const shared = { name, type: 'oauth2' as const, ...(asked.length === 0 ? {} : { scopes: asked }) }
    if (way === 'mcp') return { ...shared, mcp_url: address.trim() }
    const where =
      way === 'issuer'
        ? { issuer: address.trim() }
        : {
            token_endpoint: address.trim(),
            ...(authorization.trim() === '' ? {} : { authorization_endpoint: authorization.trim() }),
          }
    const secret = client_secret === '' ? {} : { client_secret }
    return { ...shared, ...where, allowed_hosts, client_id: client_id.trim(), ...secret, grant }
  }
  return (
    <Form action="Save credential" reason={reason} error={error} isBusy={isBusy} submit={() => submit(body())}>
      <div>
        <div className="overflow-x-auto">
          <Choices label="Kind" value={way} options={ways} onChange={setWay} />
        </div>
        <p className="mt-1 text-sm text-soft">{leads[way]}</p>
      </div>
      <Field field="name" label="Name" hint={`Tools take it as \${credentials.${name === '' ? 'NAME' : name}}.`}>
        <TextInput
          value={name}
          autoComplete="off"
          spellCheck={false}
          placeholder="WEATHER_KEY"
          onChange={({ target }) => setName(target.value)}
        />
      </Field>
      {way === 'secret' && (
        <Field field="value" label="Secret" hint={storedSecretHint}>
          <SecretInput value={value} onChange={({ target }) => setValue(target.value)} />
        </Field>
      )}
      {way !== 'secret' && (
        <Field
          field={addressFields[way]}
          label={way === 'mcp' ? 'Address of the MCP server' : way === 'issuer' ? 'Issuer' : 'Token endpoint'}
        >
          <TextInput
            inputMode="url"
            spellCheck={false}
            placeholder={way === 'mcp' ? 'https://mcp.example.com/mcp' : 'https://id.example.com'}
            value={address}
            onChange={({ target }) => setAddress(target.value)}
          />
        </Field>
      )}
      {isClient && (
        <>
          <Field label="Grant">
            <SelectInput value={grant} onChange={({ target }) => setGrant(target.value as typeof grant)}>
              <Options
                of={{
                  authorization_code: 'A person connects it in the browser',
                  client_credentials: 'To this service itself, by its secret',
                }}
              />
            </SelectInput>
          </Field>
          {way === 'endpoints' && grant === 'authorization_code' && (
            <Field field="authorization_endpoint" label="Authorization endpoint">
              <TextInput
                inputMode="url"
                spellCheck={false}
                value={authorization}
                onChange={({ target }) => setAuthorization(target.value)}
              />
            </Field>
          )}
          <div className="grid gap-4 sm:grid-cols-2">
            <Field field="client_id" label="Client ID">
              <TextInput
                autoComplete="off"
                spellCheck={false}
                value={client_id}
                onChange={({ target }) => setClient(target.value)}
              />
            </Field>
            <Field field="client_secret" label="Client secret (optional)">
              <SecretInput value={client_secret} onChange={({ target }) => setSecret(target.value)} />
            </Field>
          </div>
          {grant === 'authorization_code' && (
            <div>
              <p className="mb-1 font-medium">Redirect URI to register at the issuer</p>
              <CodeBlock
                text={new URL(api.credentials.callbackUrl(), location.href).href}
                label="Copy the redirect URI"
              />
            </div>
          )}
        </>
      )}
      {way !== 'secret' && (
        <Field field="scopes" label="Scopes (optional)" hint="Separate with spaces.">
          <TextInput spellCheck={false} value={scopes} onChange={({ target }) => setScopes(target.value)} />
        </Field>
      )}
      {way !== 'mcp' && <HostsField value={hosts} onChange={setHosts} />}
    </Form>
  )
}

/** Hosts that a credential may be sent to, as they are typed. */
export function HostsField({
  value,
  onChange,
  hint,
}: {
  value: string
  onChange: (value: string) => void
  hint?: string
}) {
  return (
    <Field
      field="allowed_hosts"
      label="Hosts it may be sent to"
      hint={hint ?? 'Tools cannot send it anywhere else. *.example.com means all names below example.com.'}
    >
      <TextInput
        spellCheck={false}
        autoComplete="off"
        placeholder="api.example.com"
        value={value}
        onChange={({ target }) => onChange(target.value)}
      />
    </Field>
  )
}

/** Hosts with spaces or commas between. */
export function hostsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((host) => host !== '')
}
