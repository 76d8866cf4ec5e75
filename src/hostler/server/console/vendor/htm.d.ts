declare const htm: {
  bind<Made>(make: (type: unknown, props: unknown, ...children: unknown[]) => Made): (strings: TemplateStringsArray, ...values: unknown[]) => Made;
};
export default htm;
