import type { builtinTools } from './tools.ts'

/** Default and maximum duration of a program of `run_javascript`. */
export const javascriptTime_seconds = { usual: 10, max: 60 } as const
/** Default and maximum number of bytes that a call of `read_file` returns. */
export const readFileLength_bytes = { usual: 65_536, max: 100_000 } as const
/** Files that one program of `run_javascript` may save. */
export const javascriptFiles = 20
/** Maximum duration of a request of `http_request`. */
export const httpRequestTime_seconds = 60
/** Maximum duration of `wait`: 30 days. */
export const waitTime_seconds = 2_592_000

export const httpRequestMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
/** Methods whose calls are `safe`; calls with any other method are `unsafe`. */
export const safeHttpMethods: ReadonlySet<string> = new Set(['GET', 'HEAD'])

interface Definition {
  /** Description for models. */
  description: string
  /** JSON Schema of its arguments. */
  parameters: Record<string, unknown>
  /** Whether a call may be repeated. For `http_request` it depends on the method, and this is the strictest. */
  safety: 'safe' | 'keyed' | 'unsafe'
}

/** The built-in tools, as models and people see them. */
export const builtinToolDefinitions: Readonly<Record<(typeof builtinTools)[number], Definition>> = {
  http_request: {
    description:
      'Sends an HTTP request to a public address and returns the status, some headers and the body of the response. Redirects are followed.',
    parameters: {
      type: 'object',
      properties: {
        method: { type: 'string', enum: [...httpRequestMethods], description: 'Default: GET.' },
        url: { type: 'string', minLength: 1, maxLength: 8192, description: 'An absolute http or https URL.' },
        headers: {
          type: 'object',
          additionalProperties: { type: 'string', maxLength: 8192 },
          maxProperties: 64,
          description: 'Request headers by name.',
        },
        body: {
          type: ['string', 'object', 'array'],
          // OpenAI refuses an array schema without `items`.
          items: {},
          description: 'The body: text is sent as it is, anything else as JSON.',
        },
        timeout_seconds: {
          type: 'number',
          minimum: 1,
          maximum: httpRequestTime_seconds,
          description: `Default: ${httpRequestTime_seconds}.`,
        },
      },
      required: ['url'],
      additionalProperties: false,
    },
    safety: 'unsafe',
  },
  run_javascript: {
    description:
      'Runs JavaScript (ES2023) and returns the value of its last expression; with `return` or `await` at the top level, the returned value. ' +
      'Also returns the output of console.log. Promises are awaited. There is no network, file system, timer or module. ' +
      'Environment variables are in `env`. `files.read(id)` returns the bytes of a file as a Uint8Array; `files.save(name, text_or_bytes, media_type)` saves a file as a result of the task and returns its id.',
    parameters: {
      type: 'object',
      properties: {
        code: { type: 'string', minLength: 1, maxLength: 100_000, description: 'The program.' },
        timeout_seconds: {
          type: 'number',
          minimum: 0.1,
          maximum: javascriptTime_seconds.max,
          description: `Default: ${javascriptTime_seconds.usual}.`,
        },
      },
      required: ['code'],
      additionalProperties: false,
    },
    // Its only effect is saved files, which a repeated call does not save again.
    safety: 'safe',
  },
  read_file: {
    description:
      'Reads a text file, or a part of it, by its id. Positions are bytes; characters are never split. It cannot read files that are not text.',
    parameters: {
      type: 'object',
      properties: {
        file_id: { type: 'string', minLength: 1, maxLength: 100, description: 'The file.' },
        offset: { type: 'integer', minimum: 0, description: 'Position of the first byte. Default: 0.' },
        length: {
          type: 'integer',
          minimum: 1,
          maximum: readFileLength_bytes.max,
          description: `Maximum number of bytes. Default: ${readFileLength_bytes.usual}.`,
        },
      },
      required: ['file_id'],
      additionalProperties: false,
    },
    safety: 'safe',
  },
  save_file: {
    description:
      'Saves a file as a result of the task, for people to download: text as `content`, anything else as `content_base64`. Returns its id.',
    parameters: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 1000, description: 'Name of the file, such as report.csv.' },
        media_type: { type: 'string', maxLength: 200, description: 'Media type, such as text/csv.' },
        content: { type: 'string', description: 'The text.' },
        content_base64: { type: 'string', description: 'The bytes in base64, if the file is not text.' },
      },
      required: ['name'],
      additionalProperties: false,
    },
    safety: 'keyed',
  },
  current_time: {
    description: 'The current date, time and day of the week.',
    parameters: {
      type: 'object',
      properties: {
        time_zone: {
          type: 'string',
          maxLength: 64,
          description: 'An IANA time zone such as Europe/Berlin. Default: UTC.',
        },
      },
      additionalProperties: false,
    },
    safety: 'safe',
  },
  wait: {
    description: 'Waits up to 30 days before the task continues. Waiting costs nothing. Use it instead of polling.',
    parameters: {
      type: 'object',
      properties: {
        seconds: { type: 'number', minimum: 0, maximum: waitTime_seconds, description: 'How long, in seconds.' },
      },
      required: ['seconds'],
      additionalProperties: false,
    },
    safety: 'safe',
  },
  request_input: {
    description:
      'Asks the person in charge a question and waits for the answer, which may take long. Use it if only a person can know or decide.',
    parameters: {
      type: 'object',
      properties: { question: { type: 'string', minLength: 1, maxLength: 10_000, description: 'The question.' } },
      required: ['question'],
      additionalProperties: false,
    },
    safety: 'safe',
  },
}
