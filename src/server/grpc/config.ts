/**
 * A namespace's configuration as a message of `proto/leasehold/v1/admin.proto`, and back. Absent and empty differ for consumers,
 * and protobuf's lists cannot be absent; hence the wrappers.
 */
import type { Consumer, NamespaceConfig } from '../../api/config.ts';
import type { Message } from './proto.ts';

interface ConsumerMessage {
  readonly namespace: string;
  readonly serviceAccounts: readonly string[];
  readonly allServiceAccounts: boolean;
}

type ConfigMessage = Omit<NamespaceConfig, 'consumers'> & {
  readonly consumers: { readonly consumers: readonly ConsumerMessage[] } | null;
};

export function encodeConfig(config: NamespaceConfig): Message {
  const consumers = config.consumers === null ? null : { consumers: config.consumers.map(encodeConsumer) };
  return { ...config, consumers };
}

/** `message`: with its integers checked already. */
export function decodeConfig(message: Message): NamespaceConfig {
  const { consumers, ...config } = message as unknown as ConfigMessage;
  return { ...config, consumers: consumers === null ? null : consumers.consumers.map(decodeConsumer) };
}

function encodeConsumer({ namespace, serviceAccounts }: Consumer): ConsumerMessage {
  return {
    namespace,
    serviceAccounts: serviceAccounts ?? [],
    allServiceAccounts: serviceAccounts === null,
  };
}

function decodeConsumer({ namespace, serviceAccounts, allServiceAccounts }: ConsumerMessage): Consumer {
  return { namespace, serviceAccounts: allServiceAccounts ? null : serviceAccounts };
}
