import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import { Field, SecretInput, TextArea } from '../../ui/forms/field.tsx'
import { Badge } from '../../ui/status.tsx'
import { verifyWebhook } from '#sdk/webhooks.ts'

const snippet = `import { Cadre } from '@cadre/sdk'

// body: the bytes as they came, before anything parses them.
const event = await new Cadre().webhooks.verify(body, request.headers, process.env.CADRE_WEBHOOK_SECRET)`

/**
 * Checks a request that a receiver refused, by the code of the SDK. Nothing leaves the browser: the secret is in no request and
 * no URL.
 */
export function VerifyHelper() {
  const [body, setBody] = useState('')
  const [headers, setHeaders] = useState('')
  const [secret, setSecret] = useState('')
  const [result, setResult] = useState<{ isGood: boolean; text: string }>()
  const check = async () => {
    if (headers.includes('…')) {
      setResult({ isGood: false, text: 'The signature is shortened (…): take it from what your receiver got.' })
      return
    }
    try {
      const { event } = await verifyWebhook(body, parseHeaders(headers), secret, {
        tolerance_seconds: Number.MAX_SAFE_INTEGER,
      })
      setResult({
        isGood: true,
        text: `Signed by this secret: ${event}. Its age was not checked here; receivers allow 5 minutes.`,
      })
    } catch (error) {
      setResult({ isGood: false, text: error instanceof Error ? error.message : String(error) })
    }
  }
  return (
    <details className="mt-6 rounded-md border border-line p-3">
      <summary className="min-h-6 cursor-pointer text-sm font-medium">Verify a signature</summary>
      <div className="mt-3 grid grid-cols-1 gap-4 lg:grid-cols-2">
        <form
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault()
            void check()
          }}
        >
          <p className="mb-3 text-sm text-soft">
            Paste what your receiver got. It is checked in this browser and not sent anywhere.
          </p>
          <Field
            label="Headers"
            hint="webhook-id, webhook-timestamp and webhook-signature, one a line. Those of a delivery here are shortened: take your receiver’s."
          >
            <TextArea
              className="font-mono !text-sm"
              spellCheck={false}
              rows={3}
              value={headers}
              onChange={(event) => setHeaders(event.target.value)}
              placeholder="webhook-id: evt_…"
            />
          </Field>
          <Field label="Body" hint="Byte for byte. A body that was parsed and written again is another one.">
            <TextArea
              className="font-mono !text-sm"
              spellCheck={false}
              rows={4}
              value={body}
              onChange={(event) => setBody(event.target.value)}
            />
          </Field>
          <Field label="Secret">
            <SecretInput value={secret} onChange={(event) => setSecret(event.target.value)} />
          </Field>
          <Button type="submit" reason={headers && body && secret ? undefined : 'Fill in all three'}>
            Verify
          </Button>
          {result && (
            <p role="status" className="text-sm">
              <Badge tone={result.isGood ? 'good' : 'bad'}>{result.isGood ? 'valid' : 'not valid'}</Badge> {result.text}
            </p>
          )}
        </form>
        <div>
          <p className="mb-2 text-sm text-soft">
            In your receiver, any library for Standard Webhooks will do, or the SDK:
          </p>
          <CodeBlock text={snippet} label="Verification by the SDK" />
        </div>
      </div>
    </details>
  )
}

function parseHeaders(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split('\n').flatMap((line) => {
      const colon = line.indexOf(':')
      return colon < 0 ? [] : [[line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]]
    }),
  )
}
