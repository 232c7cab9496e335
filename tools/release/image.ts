import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** All that Node.js, PostgreSQL and the shell that starts it need of Debian: no package manager, no interpreter but `sh`. */
const debianPackages = [
  'base-files',
  'netbase',
  'libc6',
  'libgcc-s1',
  'libstdc++6',
  'dash',
  'ca-certificates',
  'tzdata',
]
const user = 10_001
const program = 'app'
const data = 'data'

/** What a container is started with, the same as in `deploy/Dockerfile`. */
export const imageConfig = {
  User: `${user}:${user}`,
  ExposedPorts: { '8080/tcp': {}, '9464/tcp': {} },
  Env: [
    'PATH=/usr/local/bin:/usr/bin:/bin',
    'NODE_ENV=production',
    'HOST=0.0.0.0',
    'PORT=8080',
    'CADRE_METRICS_HOST=0.0.0.0',
    'CADRE_DATA_DIR=/data',
  ],
  Entrypoint: ['node', '/app/node_modules/cadre/cadre.mjs'],
  Cmd: ['serve'],
  WorkingDir: '/app',
  Volumes: { '/data': {} },
  StopSignal: 'SIGTERM',
}

/** A part of the file system that changes on its own, and so is a layer on its own. */
interface Layer {
  name: string
  folder: string
}

/**
 * Makes the root file system of the image in `out`, as folders that lie upon each other: Debian's libraries, Node.js and PostgreSQL, and
 * Cadre as it was installed below `installed`. Needs `apt-get` and `dpkg-deb`, and no rights.
 */
export function makeLayers(out: string, installed: string): Layer[] {
  const [system, runtime, cadre] = ['system', 'runtime', 'cadre'].map((name) => join(out, name)) as [
    string,
    string,
    string,
  ]
  mkdirSync(join(out, 'debs'), { recursive: true })
  makeSystem(system, join(out, 'debs/'))
  const modules = join(program, 'node_modules')
  for (const name of readdirSync(join(installed, 'node_modules'))) {
    if (name.startsWith('.')) continue
    const to = join(name === 'cadre' ? cadre : runtime, modules, name)
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(installed, 'node_modules', name), to, { recursive: true, verbatimSymlinks: true })
  }
  rmSync(join(cadre, modules, 'cadre/.cache'), { recursive: true, force: true })
  const node = readdirSync(join(runtime, modules)).find((name) => name.startsWith('node-'))
  if (node === undefined) throw new Error(`No Node.js is installed in ${installed}.`)
  mkdirSync(join(runtime, 'usr/local/bin'), { recursive: true })
  symlinkSync(join('/', modules, node, 'bin/node'), join(runtime, 'usr/local/bin/node'))
  return [
    { name: 'Debian packages', folder: system },
    { name: 'Node.js and PostgreSQL', folder: runtime },
    { name: 'Cadre', folder: cadre },
  ]
}

function makeSystem(folder: string, debs: string): void {
  const empty = ['usr/bin', 'usr/lib', 'usr/sbin', 'tmp', 'etc', data, program, 'var/lib/dpkg/status.d']
  for (const name of empty) mkdirSync(join(folder, name), { recursive: true })
  // Debian's packages name both `/lib` and `/usr/lib`, and so does what links against them.
  for (const name of ['bin', 'sbin', 'lib']) symlinkSync(`usr/${name}`, join(folder, name))
  if (process.arch === 'x64') {
    mkdirSync(join(folder, 'usr/lib64'))
    symlinkSync('usr/lib64', join(folder, 'lib64'))
  }
  unpack(folder, debs, debianPackages)
  // Some packages have their licence in another one, to which they lead.
  const docs = join(folder, 'usr/share/doc')
  const led = readdirSync(docs).filter((name) => lstatSync(join(docs, name)).isSymbolicLink())
  const targets = new Set(led.map((name) => basename(readlinkSync(join(docs, name)))))
  unpack(
    folder,
    debs,
    [...targets].filter((name) => !existsSync(join(docs, name))),
  )
  for (const entry of readdirSync(docs, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && entry.name !== 'copyright') rmSync(join(entry.parentPath, entry.name), { force: true })
  if (!existsSync(join(folder, 'bin/sh'))) symlinkSync('dash', join(folder, 'usr/bin/sh'))
  const certificates = join(folder, 'usr/share/ca-certificates/mozilla')
  mkdirSync(join(folder, 'etc/ssl/certs'), { recursive: true })
  const bundle = readdirSync(certificates)
    .toSorted()
    .map((name) => readFileSync(join(certificates, name), 'utf8').trimEnd())
  writeFileSync(join(folder, 'etc/ssl/certs/ca-certificates.crt'), `${bundle.join('\n')}\n`)
  // PostgreSQL asks for the name of the account that it runs as.
  const accounts = ['root:x:0:0:root:/root:/bin/sh', `cadre:x:${user}:${user}::/${data}:/bin/sh`]
  writeFileSync(join(folder, 'etc/passwd'), `${accounts.join('\n')}\n`)
  writeFileSync(join(folder, 'etc/group'), `root:x:0:\ncadre:x:${user}:\n`)
}

/** Unpacks Debian's packages of these names, without pages to read and without their scripts. */
function unpack(folder: string, debs: string, names: readonly string[]): void {
  if (names.length === 0) return
  const into = mkdtempSync(debs)
  const options = ['download', '-q', '-o', 'APT::Sandbox::User=root']
  execFileSync('apt-get', [...options, ...names], { cwd: into, stdio: ['ignore', 'ignore', 'inherit'] })
  const left_out = ['man', 'locale', 'lintian', 'bug', 'info'].map((name) => `--exclude=./usr/share/${name}/*`)
  for (const deb of readdirSync(into).toSorted()) {
    const content = execFileSync('dpkg-deb', ['--fsys-tarfile', join(into, deb)], { maxBuffer: 1 << 28 })
    const tar = ['-x', '-C', folder, '--keep-directory-symlink', '--no-same-owner', ...left_out, '-f', '-']
    execFileSync('tar', tar, { input: content })
    // Scanners of images read here which packages there are.
    const control = execFileSync('dpkg-deb', ['--field', join(into, deb)])
    writeFileSync(join(folder, 'var/lib/dpkg/status.d', deb.split('_')[0]!), control)
  }
}

/**
 * Writes layers as an image in the layout of the Open Container Initiative. The bytes depend on the files and on `epoch_s` alone. Returns the
 * digest of the image and its size as it is sent, in bytes.
 */
export function writeLayout(
  out: string,
  { layers, version, epoch_s }: { layers: readonly Layer[]; version: string; epoch_s: number },
): { digest: string; bytes: number } {
  const blobs = join(out, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  let bytes = 0
  const put = (content: Buffer, mediaType: string): { mediaType: string; digest: string; size: number } => {
    const hash = sha256(content)
    writeFileSync(join(blobs, hash), content)
    bytes += content.length
    return { mediaType, digest: `sha256:${hash}`, size: content.length }
  }
  const type = (name: string): string => `application/vnd.oci.image.${name}`
  const created = new Date(epoch_s * 1000).toISOString()
  const packed = layers.map(({ name, folder }) => {
    const tar = tarOf(folder, epoch_s)
    return { name, id: `sha256:${sha256(tar)}`, blob: put(gzipSync(tar, { level: 6 }), type('layer.v1.tar+gzip')) }
  })
  const labels = { 'org.opencontainers.image.title': 'cadre', 'org.opencontainers.image.version': version }
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const config = {
    created,
    architecture,
    os: 'linux',
    config: { ...imageConfig, Labels: { ...labels, 'org.opencontainers.image.licenses': 'Apache-2.0' } },
    rootfs: { type: 'layers', diff_ids: packed.map(({ id }) => id) },
    history: packed.map(({ name }) => ({ created, created_by: name })),
  }
  const manifest = put(
    json({
      schemaVersion: 2,
      mediaType: type('manifest.v1+json'),
      config: put(json(config), type('config.v1+json')),
      layers: packed.map(({ blob }) => blob),
    }),
    type('manifest.v1+json'),
  )
  writeFileSync(join(out, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }))
  const entry = {
    ...manifest,
    platform: { architecture, os: 'linux' },
    annotations: { 'org.opencontainers.image.ref.name': version },
  }
  writeFileSync(
    join(out, 'index.json'),
    json({ schemaVersion: 2, mediaType: type('index.v1+json'), manifests: [entry] }),
  )
  return { digest: manifest.digest, bytes }
}

/** The files of a folder, in one order, of one time, and of root, but for the folder of data. */
function tarOf(folder: string, epoch_s: number): Buffer {
  const same = [
    '--format=posix',
    '--pax-option=delete=atime,delete=ctime',
    '--sort=name',
    `--mtime=@${epoch_s}`,
    '--numeric-owner',
  ]
  const options = [...same, '--mode=u+rwX,go=rX', '--owner=0', '--group=0', '-C', folder]
  const all = execFileSync('tar', [...options, `--exclude=./${data}`, '--exclude=./tmp', '-c', '.'], {
    maxBuffer: 1 << 30,
  })
  if (!existsSync(join(folder, data))) return all
  // A tar ends with blocks of zeros, so what has other owners and modes goes before the rest.
  const owned = execFileSync('tar', [
    ...same,
    `--owner=${user}`,
    `--group=${user}`,
    '--mode=0700',
    '-C',
    folder,
    '-c',
    data,
  ])
  const tmp = execFileSync('tar', [...same, '--owner=0', '--group=0', '--mode=1777', '-C', folder, '-c', 'tmp'])
  return Buffer.concat([entries(owned), entries(tmp), all])
}

/** A tar without its end. */
function entries(tar: Buffer): Buffer {
  let end = tar.length
  while (end >= 512 && tar.subarray(end - 512, end).every((byte) => byte === 0)) end -= 512
  return tar.subarray(0, end)
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
