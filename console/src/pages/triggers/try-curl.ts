import { sourceDefinitions, type TriggerSource } from '#contract/doors/trigger-sources.ts'
import { quoted } from '../../shell-quoting.ts'

interface Proof {
  source: TriggerSource
  hmac: {
    header: string
    algorithm?: string | undefined
    encoding?: string | undefined
    prefix?: string | undefined
    timestamp_header?: string | undefined
  } | null
  url: string
  /** The secret, where it is known here; else the shell has to know it as `$SECRET`. */
  secret: string | undefined
}

const sample = '{"hello": "world"}'

/**
 * Shell commands that deliver a sample with a valid proof, as the sender would; undefined where a shell cannot make it: of a time
 * within the body, or of a secret that is encoded.
 */
export function tryCurl({ source, hmac, url, secret }: Proof): string | undefined {
  const { proof, template, token, sent_at } = sourceDefinitions[source]
  if (sent_at !== undefined || proof === 'standard_webhooks') return undefined
  const given = secret === undefined ? '"$SECRET"' : quoted(secret)
  const curl = (headers: string) =>
    [`BODY=${quoted(sample)}`, `curl ${quoted(url)} -H 'Content-Type: application/json' ${headers} -d "$BODY"`].join(
      '\n',
    )
  if (!template && !hmac) {
    const { header, prefix } = token ?? sourceDefinitions.bearer.token!
    return `SECRET=${given}\n${curl(`-H "${header}: ${prefix}$SECRET"`)}`
  }
  const form = template ?? {
    header: hmac!.header,
    algorithm: hmac!.algorithm ?? 'sha256',
    encoding: hmac!.encoding ?? 'hex',
    prefix: hmac!.prefix ?? '',
    timestamp: hmac!.timestamp_header === undefined ? null : { header: hmac!.timestamp_header },
    lead: hmac!.timestamp_header === undefined ? '' : '{timestamp}.',
  }
  const { header, algorithm, encoding, prefix, timestamp, lead } = form
  const encode = encoding === 'hex' ? `sed 's/.*= *//'` : 'openssl base64 -A'
  const digest = `openssl dgst -${algorithm} -hmac "$SECRET"${encoding === 'hex' ? '' : ' -binary'} | ${encode}`
  const signature = `SIGNATURE=$(printf '%s' "${lead.replace('{timestamp}', '$TIME')}$BODY" | ${digest})`
  const value = timestamp === 'in signature' ? `t=$TIME,${prefix}$SIGNATURE` : `${prefix}$SIGNATURE`
  const time = timestamp !== null && timestamp !== 'in signature' ? ` -H "${timestamp.header}: $TIME"` : ''
  const [body, request] = curl(`-H "${header}: ${value}"${time}`).split('\n')
  return [`SECRET=${given}`, ...(timestamp === null ? [] : ['TIME=$(date +%s)']), body, signature, request].join('\n')
}
