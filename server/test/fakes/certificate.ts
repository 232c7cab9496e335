import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Makes a self-signed certificate for a name, with its key; both as PEM. */
export function makeCertificate(name: string): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-certificate-'))
  try {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
